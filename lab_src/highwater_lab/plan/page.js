// Draws the plan over its traffic. Each change is sent to the simulator, one at a time, and what it answers is drawn.
// Times are seconds from the start of the traffic.
const part = id => document.getElementById(id);
const number = value => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });
const usd = value => "$" + value.toLocaleString("en", { maximumFractionDigits: 0 });
const chart = part("chart"), DAY = 1440, MOST_WINDOWS = 20;
const DAYS = ["MON-SUN", "MON-FRI", "SAT-SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
const HANDLES = { floor: ["min_capacity", "#1e8449"], ceiling: ["max_capacity", "#57606a"] };
let opening, plan, answer, dimension, view, drag = null, plot = null, problem = "", isAsking = false, isChanged = false;
const fields = [];

const bounded = (low, value, high) => Math.max(low, Math.min(high, value));
const minuteOf = text => Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5));
const timeOf = minute => {
  const within = ((minute % DAY) + DAY) % DAY;
  return `${String(Math.floor(within / 60)).padStart(2, "0")}:${String(within % 60).padStart(2, "0")}`;
};
const stampOf = second => new Date((opening.start + second) * 1000).toISOString().slice(0, 16);
const secondOf = stamp => Date.parse(stamp + "Z") / 1000 - opening.start;
const parsed = (second, zone) => Object.fromEntries(new Intl.DateTimeFormat("en-GB", {
  timeZone: zone, weekday: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23"
}).formatToParts((opening.start + second) * 1000).map(each => [each.type, each.value]));
function clock(second, zone) {
  const parts = parsed(second, zone);
  return { day: `${parts.weekday} ${parts.day}`, time: `${parts.hour}:${parts.minute}` };
}
// whether the windows' clock is not the chart's
const isLocal = () => JSON.stringify(clock(0, opening.timezone)) !== JSON.stringify(clock(0, "UTC"));
const floorName = () => dimension + "_min";
const isDrawn = window => window[floorName()] !== undefined;
// people read and edit the numbers, so a drag gives two significant digits
function tidy(units) {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, units))) - 1);
  return Math.max(1, Math.round(units / step) * step);
}

async function ask() {
  isChanged = true;
  redraw();
  if (isAsking) return;
  isAsking = true;
  document.body.dataset.state = "asking";
  while (isChanged) {
    isChanged = false;
    let reply;
    try {
      const body = JSON.stringify(plan);
      reply = await (await fetch("simulate", { method: "POST", headers: { "Content-Type": "application/json" }, body })).json();
    } catch {
      reply = { error: "the planner does not answer; start highwater plan again" };
    }
    problem = reply.error || "";
    // of a plan that has changed meanwhile, the answer is good for a look, but windows are where the pointer has them
    if (!problem) answer = isChanged ? { ...reply, openings: answer.openings } : reply;
    show();
  }
  isAsking = false;
  settle();
}
// once the answer is drawn
function settle() {
  requestAnimationFrame(() => { if (!isAsking) document.body.dataset.state = "answered"; });
}
function show() {
  part("problem").hidden = !problem;
  part("problem").textContent = problem;
  const minutes = answer.throttled_minutes;
  part("usd").textContent = usd(answer.usd_per_month);
  part("throttled").textContent = minutes ? `${answer.throttled} of the requested units` : "nothing";
  part("minutes").textContent = minutes ? ` (${number(minutes)} minute${minutes > 1 ? "s" : ""})` : "";
  part("code").textContent = answer.code;
  part("warnings").replaceChildren(...answer.warnings.map(text => {
    const line = document.createElement("li");
    line.textContent = text;
    return line;
  }));
  redraw();
}
let isPlanned = false;
function redraw() {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => {
    isPlanned = false;
    for (const field of fields) if (field.input !== document.activeElement) field.input.value = field.read();
    draw();
  });
}

function draw() {
  const width = chart.clientWidth, height = chart.clientHeight, [from, to] = view, steps = answer.targets[dimension];
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const clocks = isLocal() ? ["UTC", opening.timezone] : ["UTC"];
  const demand = opening.demand[dimension], own = plan[dimension], left = 44, right = width - 34, bottom = height - 7 - 15 * clocks.length;
  const refused = steps.throttled.filter(([minute]) => minute * 60 >= from && minute * 60 < to), base = bottom - (refused.length ? 48 : 0);
  const columns = Math.max(1, Math.floor(right - left)), x = at => left + (bounded(from, at, to) - from) / (to - from) * (right - left);
  const secondAt = px => from + (px - left) / (right - left) * (to - from);
  // the busiest of the minutes that share a pixel
  const tops = Array.from({ length: columns }, (_, column) => {
    const first = Math.floor(secondAt(left + column) / 60), after = Math.max(first + 1, Math.ceil(secondAt(left + column + 1) / 60));
    return demand.slice(first, after).reduce((most, each) => Math.max(most, each), 0);
  });
  // the scale stays while something is dragged
  const top = drag ? plot.top : 1.08 * Math.max(1, ...tops, own.max_capacity, own.min_capacity);
  const y = units => base - bounded(0, units / top, 1) * (base - 10);
  plot = { top, base, secondAt, unitsAt: py => (base - py) / (base - 10) * top, percentAt: py => (base - py) / (base - 10) * 100 };
  const parts = [];
  const unit = 10 ** Math.floor(Math.log10(top / 3)), every = [1, 2, 5, 10].map(n => n * unit).find(n => top / n <= 4.5);
  for (let units = 0; units <= top; units += every) parts.push(
    `<path d="M${left} ${y(units)}H${right}" stroke="#e4e8ec"/>`,
    `<text x="${left - 6}" y="${y(units) + 4}" text-anchor="end" fill="#57606a">${units >= 1000 ? number(units / 1000) + "k" : number(units)}</text>`
  );
  const tick = 60 * ([60, 180, 360, 720, 1440, 2880, 10080, 40320].find(n => (to - from) / n / 60 <= (right - left) / 90) || 161280);
  for (let at = Math.ceil((opening.start + from) / tick) * tick - opening.start; at <= to; at += tick) {
    parts.push(`<path d="M${x(at)} 10V${bottom}" stroke="#e4e8ec"/>`);
    clocks.forEach((zone, row) => {
      const { day, time } = clock(at, zone), label = tick >= 86400 && !row ? day : time === "00:00" ? `${day} ${time}` : time;
      parts.push(`<text x="${bounded(left + 30, x(at), right - 30)}" y="${bottom + 15 + 15 * row}" text-anchor="middle" fill="#57606a">${label}</text>`);
    });
  }
  if (clocks[1]) parts.push(`<text y="${bottom + 15}" fill="#57606a">UTC</text>`, `<text y="${bottom + 30}" fill="#57606a">local</text>`);
  parts.push(`<path d="M${left} ${base}${tops.map((units, column) => `L${left + column} ${y(units).toFixed(1)}`).join("")}L${right} ${base}Z" fill="#1f77b4" opacity=".3"/>`);
  drawWindows(parts, x, y, base);
  let line = "";
  steps.units.forEach(([at, units], i) => {
    const next = i + 1 < steps.units.length ? steps.units[i + 1][0] : opening.minutes * 60;
    if (next < from || at > to) return;
    line += `${line ? "V" : `M${x(at)} `}${y(units)}H${x(next)}`;
  });
  parts.push(`<path d="${line}" fill="none" stroke="#c0392b" stroke-width="2" pointer-events="none"/>`);
  const worst = refused.reduce((most, [, units]) => Math.max(most, units), 0);
  if (worst) parts.push(`<text x="${right}" y="${bottom - 37}" text-anchor="end" fill="#c0392b">throttled</text>`);
  for (const [minute, units] of refused) {
    const high = Math.max(2, units / worst * 34);
    parts.push(`<rect x="${x(minute * 60)}" y="${bottom - high}" width="${Math.max(1, x(minute * 60 + 60) - x(minute * 60))}" height="${high}" fill="#c0392b"/>`);
  }
  for (const [name, [member, colour]] of Object.entries(HANDLES))
    parts.push(handle(name, `${name} ${number(own[member])}`, left, right, left + 4, y(own[member]), colour));
  const percent = own.target_utilization_percent, high = base - percent / 100 * (base - 10);
  parts.push(handle("target", `target ${percent} %`, right - 110, right, right - 84, high, "#7d3cba"));
  chart.innerHTML = parts.join("");
}
function handle(name, text, from, to, at, y, colour) {
  // a low line's name does not cover the times below
  const low = Math.min(y, plot.base - 12);
  return `<g data-part="${name}"><path d="M${from} ${y}H${to}" stroke="transparent" stroke-width="12"/>
    <path d="M${from} ${y}H${to}" stroke="${colour}" stroke-width="1.5" stroke-dasharray="${name === "floor" ? "none" : "6 4"}"/>
    <rect x="${at}" y="${low - 10}" width="${text.length * 6.6 + 10}" height="20" rx="4" fill="${colour}"/>
    <text x="${at + 5}" y="${low + 4}" fill="#fff">${text}</text></g>`;
}
function drawWindows(parts, x, y, base) {
  const box = (what, from, to, units, colour) => {
    const begin = x(from), end = x(to), high = y(units), grip = Math.min(10, (end - begin) / 4);
    // a start that is not typed in full has no place
    if (!(end > begin)) return;
    const rect = (part, left, top, width, height, more) =>
      `<rect data-of="${what}" data-part="${part}" x="${left}" y="${top}" width="${width}" height="${Math.max(0, height)}" ${more}/>`;
    parts.push(
      rect("middle", begin, high, end - begin, base - high, `fill="${colour}" fill-opacity=".2" stroke="${colour}"`),
      rect("start", begin - 2, high, grip + 2, base - high, `fill="transparent"`), rect("end", end - grip, high, grip + 2, base - high, `fill="transparent"`),
      rect("top", begin, high - 5, end - begin, 12, `fill="transparent"`), `<path d="M${begin} ${high}H${end}" stroke="${colour}" stroke-width="3" pointer-events="none"/>`
    );
  };
  plan.windows.forEach((window, i) => {
    if (isDrawn(window)) for (const [from, to] of answer.openings[i] || []) box(i, from, to, window[floorName()], "#1e8449");
  });
  const boost = plan.boost;
  if (boost && boost.dimension === dimension) {
    const from = secondOf(boost.start);
    box("boost", from, from + boost.minutes * 60, boost.units, "#b9770e");
  }
}

// the pointer's place in the chart; offsetX is that in another element in some browsers
function placeOf(event) {
  const box = chart.getBoundingClientRect();
  return { at: plot.secondAt(event.clientX - box.left), y: event.clientY - box.top };
}
function begin(event) {
  const held = event.target.closest("[data-part]");
  if (!held || event.button) return;
  event.preventDefault();
  // an input that has the focus would keep its value
  if (document.activeElement) document.activeElement.blur();
  chart.setPointerCapture(event.pointerId);
  const of = held.dataset.of, { at, y } = placeOf(event);
  drag = { part: held.dataset.part, of, at, units: plot.unitsAt(y) };
  if (of === undefined) return;
  drag.before = structuredClone(of === "boost" ? plan.boost : plan.windows[of]);
  drag.openings = of === "boost" ? [] : structuredClone(answer.openings[of]);
}
function move(event) {
  if (!drag) return;
  const own = plan[dimension], { at, y } = placeOf(event), units = plot.unitsAt(y);
  if (drag.part === "target") own.target_utilization_percent = bounded(20, Math.round(plot.percentAt(y)), 90);
  else if (drag.part === "floor") own.min_capacity = bounded(1, tidy(units), own.max_capacity);
  else if (drag.part === "ceiling") own.max_capacity = Math.max(own.min_capacity, tidy(units));
  else moveBox(at, units, own);
  ask();
}
function moveBox(at, units, own) {
  const isBoost = drag.of === "boost", box = isBoost ? plan.boost : plan.windows[drag.of], name = isBoost ? "units" : floorName();
  if (drag.part === "top") {
    box[name] = bounded(1, tidy(units), own.max_capacity);
    return;
  }
  // whole steps, wider ones where a pixel is many minutes
  const step = view[1] - view[0] > 2 * 86400 ? 15 : 5, length = lengthOf(drag.before);
  let minutes = Math.round((at - drag.at) / 60 / step) * step;
  if (drag.part === "start") minutes = bounded(length - DAY, minutes, length - step);
  if (drag.part === "end") minutes = bounded(step - length, minutes, DAY - length);
  const begins = drag.part === "end" ? 0 : minutes, ends = drag.part === "start" ? 0 : minutes;
  if (isBoost) {
    const start = bounded(0, secondOf(drag.before.start) + begins * 60, (opening.minutes - 1) * 60);
    Object.assign(box, { start: stampOf(start), minutes: length + ends - begins });
  } else {
    Object.assign(box, { start: timeOf(minuteOf(drag.before.start) + begins), end: timeOf(minuteOf(drag.before.end) + ends) });
    answer.openings[drag.of] = drag.openings.map(([from, to]) => [from + begins * 60, to + ends * 60]);
  }
  // the middle moves both ways, once the pointer has left its level
  if (drag.part === "middle" && Math.abs(units - drag.units) > plot.top / 25)
    box[name] = bounded(1, tidy(drag.before[name] + units - drag.units), own.max_capacity);
}
const lengthOf = box => box.minutes || (minuteOf(box.end) - minuteOf(box.start) + DAY) % DAY || DAY;
function end() {
  if (!drag) return;
  drag = null;
  redraw();
}

function look(from, to) {
  const all = opening.minutes * 60, span = Math.min(all, Math.max(7200, to - from));
  from = bounded(0, from, all - span);
  view = [from, from + span];
  tellVisible();
  redraw();
}
// a part of the time is not taken for all of it
function tellVisible() {
  const all = opening.minutes * 60, days = seconds => number(seconds / 86400), [from, to] = view.map(at => clock(at, "UTC"));
  part("visible").hidden = view[1] - view[0] >= all;
  part("visible").textContent = `Shown: ${days(view[1] - view[0])} of ${days(all)} days, ${from.day} ${from.time} to ${to.day} ${to.time} UTC. ← and → move, “all” shows everything.`;
}
function field(input, read, write) {
  fields.push({ input, read });
  input.addEventListener("change", () => { write(input.type === "number" ? Number(input.value) : input.value); ask(); });
  return input;
}
function listParts() {
  // the first three fields are the sizes, which stay
  fields.length = 3;
  const rows = plan.windows.map((window, i) => isDrawn(window) ? row(window, floorName(), () => {
    plan.windows.splice(i, 1);
    answer.openings.splice(i, 1);
  }) : null);
  if (plan.boost && plan.boost.dimension === dimension) rows.push(row(plan.boost, "units", () => { plan.boost = null; }));
  const shown = rows.filter(Boolean);
  part("plan-parts").hidden = !shown.length;
  part("plan-parts").tBodies[0].replaceChildren(...shown);
  part("add-window").disabled = plan.windows.length >= MOST_WINDOWS;
  part("add-boost").disabled = Boolean(plan.boost);
}
function change(act) {
  act();
  listParts();
  ask();
}
function row(box, floor, remove) {
  const made = document.createElement("tr"), isBoost = box === plan.boost;
  const input = (type, label, read, write) => {
    const made = document.createElement(type === "select" ? "select" : "input");
    if (type === "select") made.append(...DAYS.map(each => new Option(each)));
    else made.type = type;
    made.setAttribute("aria-label", label);
    return field(made, read, write);
  };
  const member = (type, name, label = name) => input(type, label, () => box[name], value => { box[name] = value; });
  // text: a browser's own input of times may have twelve hours, where code and chart have 24
  const timed = (name, form, label) => {
    const made = member("text", name, label);
    Object.assign(made, { className: form.length > 5 ? "stamp" : "time", placeholder: form });
    return made;
  };
  const begins = isBoost ? timed("start", "YYYY-MM-DDTHH:MM", "start, UTC") : timed("start", "HH:MM", `start, ${opening.timezone}`);
  const ends = isBoost ? member("number", "minutes", "minutes, up to a day") : timed("end", "HH:MM", `end, ${opening.timezone}`);
  const gone = document.createElement("button");
  gone.textContent = "remove";
  gone.addEventListener("click", () => change(remove));
  for (const each of [isBoost ? "boost" : member("text", "name"), isBoost ? "once: UTC, minutes" : member("select", "days"), begins, ends, member("number", floor, "floor"), gone]) {
    const cell = made.insertCell(), label = each.ariaLabel;
    if (label) cell.dataset.label = label;
    cell.append(each);
  }
  return made;
}
// where most is throttled, which is then shown, or about the middle of the visible time
function placeOfNext() {
  const span = view[1] - view[0];
  const worst = answer.targets[dimension].throttled.reduce((most, each) => each[1] > most[1] ? each : most, [(view[0] + span * .4) / 60, 0]);
  const at = Math.floor(worst[0] / 15) * 900;
  if (at < view[0] || at >= view[1]) look(at - span / 2, at + span / 2);
  return at;
}
function addWindow() {
  const middle = opening.start + placeOfNext(), own = plan[dimension];
  const local = new Intl.DateTimeFormat("en-GB", { timeZone: opening.timezone, hour: "2-digit", hourCycle: "h23" }).format(middle * 1000);
  // wide enough to be held, as far as it is visible
  const start = Number(local) * 60, length = view[1] - view[0] > 86400 ? 180 : 60;
  const taken = new Set(plan.windows.map(each => each.name));
  const name = Array.from({ length: MOST_WINDOWS + 1 }, (_, i) => `${dimension}-window-${i + 1}`).find(each => !taken.has(each));
  plan.windows.push({ name, days: "MON-SUN", start: timeOf(start), end: timeOf(start + length), [floorName()]: tidy((own.min_capacity + own.max_capacity) / 2) });
}
function addBoost() {
  const own = plan[dimension];
  plan.boost = { dimension, start: stampOf(placeOfNext()), minutes: 120, units: tidy((own.min_capacity + own.max_capacity) / 2) };
}
function choose(name) {
  dimension = name;
  for (const button of part("dimensions").children) button.setAttribute("aria-pressed", button.value === name);
  listParts();
  show();
}
async function copy() {
  try {
    await navigator.clipboard.writeText(answer.code);
    part("copy").textContent = "copied";
  } catch {
    getSelection().selectAllChildren(part("code"));
    part("copy").textContent = "selected";
  }
  setTimeout(() => { part("copy").textContent = "copy"; }, 2000);
}
async function main() {
  const reply = await (await fetch("opening")).json();
  opening = reply;
  ({ plan, answer } = opening);
  const all = opening.minutes * 60;
  view = [0, Math.min(all, (innerWidth < 600 ? 2 : 7) * 86400)];
  tellVisible();
  if (isLocal()) part("clocks").textContent = `times are UTC and, below, those of ${opening.timezone}, which the windows have`;
  part("start-zone").textContent = `start, ${opening.timezone}`;
  const first = opening.answer, indexes = opening.indexes.length ? ` The indexes ${opening.indexes.join(", ")} follow the table.` : "";
  const refused = first.throttled_minutes ? `${first.throttled} throttled` : "nothing throttled";
  part("beside").textContent = `Auto scaling alone, as the page begins: ${usd(first.usd_per_month)}, ${refused}. On demand: ${usd(opening.on_demand_usd)}. With ${opening.prices}. Windows are in ${opening.timezone}.${indexes}`;
  const names = Object.keys(opening.demand);
  if (names.length > 1) part("dimensions").append(...names.map(name => {
    const button = document.createElement("button");
    button.value = name;
    button.textContent = name + "s";
    button.addEventListener("click", () => choose(name));
    return button;
  }));
  for (const [id, member] of [["floor", "min_capacity"], ["ceiling", "max_capacity"], ["target", "target_utilization_percent"]])
    field(part(id), () => plan[dimension][member], value => { plan[dimension][member] = value; });
  const moves = {
    in: (from, span) => look(from + span / 4, from + span * 3 / 4), out: (from, span) => look(from - span / 2, from + span * 3 / 2),
    back: (from, span) => look(from - span / 2, from + span / 2), on: (from, span) => look(from + span / 2, from + span * 3 / 2),
    all: () => look(0, all)
  };
  for (const button of document.querySelectorAll("button[data-move]"))
    button.addEventListener("click", () => moves[button.dataset.move](view[0], view[1] - view[0]));
  chart.addEventListener("pointerdown", begin);
  chart.addEventListener("pointermove", move);
  chart.addEventListener("pointerup", end);
  chart.addEventListener("pointercancel", end);
  part("add-window").addEventListener("click", () => change(addWindow));
  part("add-boost").addEventListener("click", () => change(addBoost));
  part("copy").addEventListener("click", copy);
  addEventListener("resize", redraw);
  choose(names[0]);
  settle();
}
main();
