const plans = document.querySelectorAll("[data-row]");
const choose = row => {
  for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== row;
  for (const part of plans) part.setAttribute("aria-selected", part.dataset.row === row);
};
for (const part of plans) {
  part.addEventListener("click", () => choose(part.dataset.row));
  part.addEventListener("keydown", event => { if (event.key === "Enter") choose(part.dataset.row); });
}
