// How the site's search orders what it finds: Sphinx's own scores, with the records of decisions behind everything
// else. They are for people who change Highwater, and mention every word that its users look for.
var Scorer = {
  score: ([page, title, anchor, description, score]) => (page.startsWith("decisions/") ? score - 1000 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
