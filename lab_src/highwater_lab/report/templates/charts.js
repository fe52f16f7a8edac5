// Draws the rehearsal's charts: for each target what was requested, and the capacity of every policy shown, laid over
// each other. The data are in the page, compressed; times in it are seconds from the start.
const inflate = async text => {
  const bytes = Uint8Array.from(atob(text), each => each.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
};
const number = value => value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 });
const ink = name => getComputedStyle(document.body).getPropertyValue(name);
let report, view, zone;
let chosen = 0, cursor = null, dragged = null;
const shown = new Set();

function clock(seconds, name) {
  const parts = {};
  for (const part of new Intl.DateTimeFormat("en-GB", {
    timeZone: name, weekday: "short", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
    hourCycle: "h23"
  }).formatToParts(seconds * 1000)) parts[part.type] = part.value;
  return { day: `${parts.weekday} ${parts.year}-${parts.month}-${parts.day}`, short: `${parts.weekday} ${parts.day}`, time: `${parts.hour}:${parts.minute}` };
}
// the local time beside UTC, empty where they are the same
function local(seconds) {
  const there = clock(seconds, zone), utc = clock(seconds, "UTC");
  return there.day === utc.day && there.time === utc.time ? "" : `${there.day === utc.day ? "" : there.day.slice(0, 4)}${there.time} ${zone}`;
}
function told(seconds) {
  const utc = clock(seconds, "UTC"), there = local(seconds);
  return `${utc.day} ${utc.time} UTC` + (there ? `, ${there}` : "");
}
// the last of the steps [second, value, ...] that begins at or before a second
function stepAt(steps, at) {
  let low = 0, high = steps.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (steps[middle][0] <= at) low = middle + 1; else high = middle;
  }
  return low - 1;
}
const isShown = run => shown.has(run) || run === chosen;
const isVisible = ([point]) => (point + 1) * report.step * 60 > view[0] && point * report.step * 60 < view[1];
// where no policy shown throttles in the visible time, there is no strip for it
const isThrottled = target => target.runs.some((run, i) => isShown(i) && run.throttled.some(isVisible));

function draw(target) {
  const canvas = target.canvas, ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, sans-serif";
  const hasLocal = Boolean(local(report.start)), left = 48, right = width - 6, strip = isThrottled(target) ? 34 : 0;
  const bottom = height - (hasLocal ? 34 : 20), floorY = bottom - (strip && strip + 14);
  const [from, to] = view, span = to - from, second = report.step * 60;
  const x = at => left + (Math.max(from, Math.min(to, at)) - from) / span * (right - left);
  target.second = px => Math.max(from, Math.min(to, from + (px - left) / (right - left) * span));
  const columns = Math.max(1, Math.floor(right - left));
  // the busiest of the points that share a pixel
  const topsOf = values => Array.from({ length: columns }, (_, column) => {
    const first = Math.floor(target.second(left + column) / second), after = Math.ceil(target.second(left + column + 1) / second);
    let most = 0;
    for (let i = first; i < Math.max(first + 1, after) && i < values.length; i++) if (values[i] > most) most = values[i];
    return most;
  });
  const blues = [[topsOf(target.demand), ink("--requested")], [topsOf(target.written), ink("--written")]];
  let top = Math.max(1, target.limit || 0, ...blues.flatMap(([tops]) => tops));
  const lines = target.runs.map((run, i) => {
    if (!isShown(i) || !run.units.length) return [];
    const first = Math.max(0, stepAt(run.units, from)), line = run.units.slice(first, stepAt(run.units, to) + 1);
    for (const [, units] of line) if (units > top) top = units;
    return line;
  });
  top *= 1.06;
  const y = units => floorY - Math.min(1, units / top) * (floorY - 8);
  // axes
  pen.fillStyle = ink("--muted");
  pen.strokeStyle = ink("--faint");
  const unit = 10 ** Math.floor(Math.log10(top / 3)), every = [1, 2, 5, 10].map(n => n * unit).find(n => top / n <= 4.5);
  pen.textAlign = "right";
  for (let units = 0; units <= top; units += every) {
    pen.fillText(units >= 1000 ? number(units / 1000) + "k" : number(units), left - 6, y(units) + 4);
    pen.beginPath(); pen.moveTo(left, y(units)); pen.lineTo(right, y(units)); pen.stroke();
  }
  const minutes = [1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 10080, 20160, 40320], wide = n => n < 1440 ? 96 : 56;
  const tick = 60 * (minutes.find(n => span / (n * 60) * wide(n) <= right - left) || 40320);
  pen.textAlign = "center";
  let ended = 0;
  const start = Math.ceil((report.start + from) / tick) * tick - report.start;
  for (let at = start; at <= to; at += tick) {
    const utc = clock(report.start + at, "UTC"), there = clock(report.start + at, zone);
    const label = each => at === start || each.time < "00:30" ? `${each.short} ${each.time}` : each.time;
    const upper = tick < 86400 ? label(utc) : utc.short;
    // a day's own local time, with the weekday where that is another
    const lower = tick < 86400 ? label(there) : there.day === utc.day ? there.time : `${there.short.slice(0, 3)} ${there.time}`;
    const half = Math.max(pen.measureText(upper).width, hasLocal ? pen.measureText(lower).width : 0) / 2;
    const px = Math.min(right - half, Math.max(left + half, x(at)));
    pen.beginPath(); pen.moveTo(x(at), 8); pen.lineTo(x(at), bottom); pen.stroke();
    if (px - half < ended + 4) continue;
    ended = px + half;
    pen.fillText(upper, px, bottom + 13);
    if (hasLocal) pen.fillText(lower, px, bottom + 28);
  }
  pen.textAlign = "left";
  pen.fillText("UTC", 0, bottom + 13);
  if (hasLocal) pen.fillText("local", 0, bottom + 28);
  // what was requested, and over it what a queue writes of it
  for (const [tops, blue] of blues) {
    pen.fillStyle = blue;
    tops.forEach((units, column) => { if (units) pen.fillRect(left + column, y(units), 1, floorY - y(units)); });
  }
  if (target.limit) {
    pen.fillStyle = pen.strokeStyle = ink("--bad");
    pen.fillText(`declared: ${number(target.limit)} h`, left + 4, y(target.limit) - 4);
    pen.setLineDash([5, 4]);
    pen.beginPath(); pen.moveTo(left, y(target.limit)); pen.lineTo(right, y(target.limit)); pen.stroke();
    pen.setLineDash([]);
  }
  // floor and ceiling of the chosen policy
  const own = target.runs[chosen];
  for (let i = Math.max(0, stepAt(own.bounds, from)); i < own.bounds.length && own.bounds[i][0] <= to; i++) {
    const [at, floor, ceiling] = own.bounds[i], begin = x(at), end = x(i + 1 < own.bounds.length ? own.bounds[i + 1][0] : to);
    pen.fillStyle = pen.strokeStyle = ink("--bounds");
    pen.fillRect(begin, y(floor) - 1, Math.max(1, end - begin), 2);
    if (ceiling > top) continue;
    pen.setLineDash([6, 4]);
    pen.beginPath(); pen.moveTo(begin, y(ceiling)); pen.lineTo(end, y(ceiling)); pen.stroke();
    pen.setLineDash([]);
  }
  // capacity, the chosen policy's last
  const order = [...lines.keys()].sort((a, b) => (a === chosen) - (b === chosen));
  for (const i of order) {
    if (!lines[i].length) continue;
    pen.strokeStyle = report.runs[i].colour;
    pen.lineWidth = i === chosen ? 2 : 1;
    // steps are sharp on whole pixels
    const sharp = value => Math.round(value) + (i === chosen ? 0 : .5);
    pen.beginPath();
    lines[i].forEach(([at, units], n) => {
      if (n) pen.lineTo(sharp(x(at)), sharp(y(lines[i][n - 1][1])));
      pen.lineTo(sharp(x(at)), sharp(y(units)));
    });
    pen.lineTo(right, sharp(y(lines[i].at(-1)[1])));
    pen.stroke();
  }
  pen.lineWidth = 1;
  // a diamond for a change of the chosen policy's capacity; of those too close to be told apart, the first
  target.diamonds = [];
  for (const [at, text] of own.why) {
    if (at < from || at > to) continue;
    const last = target.diamonds.at(-1);
    if (last && x(at) - last.x < 9) { last.more++; continue; }
    target.diamonds.push({ x: x(at), text, more: 0 });
    const step = own.units[stepAt(own.units, at)], py = y(step ? step[1] : 0);
    pen.fillStyle = report.runs[chosen].colour;
    pen.beginPath(); pen.moveTo(x(at), py - 4); pen.lineTo(x(at) + 4, py); pen.lineTo(x(at), py + 4); pen.lineTo(x(at) - 4, py); pen.fill();
  }
  // throttled units, where there are any
  if (strip) {
    const worst = target.runs.filter((_, i) => isShown(i)).flatMap(run => run.throttled.filter(isVisible))
      .reduce((most, each) => Math.max(most, each[1]), 0);
    pen.fillStyle = ink("--muted");
    pen.fillText("throttled", left, bottom - strip - 2);
    for (const i of order) {
      if (!isShown(i)) continue;
      pen.fillStyle = report.runs[i].colour;
      for (const [point, units] of target.runs[i].throttled.filter(isVisible)) {
        const at = point * second, high = Math.max(2, units / worst * strip);
        pen.fillRect(x(at), bottom - high, Math.max(i === chosen ? 2 : 1, x(at + second) - x(at)), high);
      }
    }
  }
  if (dragged) {
    pen.fillStyle = ink("--requested");
    pen.fillRect(x(dragged.from), 8, x(dragged.to) - x(dragged.from), bottom - 8);
  } else if (cursor !== null) {
    pen.fillStyle = ink("--muted");
    pen.fillRect(x(cursor), 8, 1, bottom - 8);
  }
}
function explain(target, at, px) {
  const point = Math.min(Math.ceil(report.minutes / report.step) - 1, Math.floor(at / report.step / 60));
  const lines = [told(report.start + Math.floor(at / 60) * 60)];
  if (target.demand.length) lines.push(`requested ${number(target.demand[point])}/s`);
  if (target.written.length) lines.push(`the queue writes ${number(target.written[point])}/s`);
  report.runs.forEach((run, i) => {
    const of = target.runs[i];
    if (!isShown(i)) return;
    const units = of.units.length ? number(of.units[stepAt(of.units, at)][1]) + target.unit : "";
    const refused = of.throttled.find(each => each[0] === point);
    if (units || refused) lines.push(`${run.name} ${units}` + (refused ? ` throttled ${number(refused[1])} units: ${refused[2]}` : ""));
  });
  const bounds = target.runs[chosen].bounds[stepAt(target.runs[chosen].bounds, at)];
  if (bounds) lines.push(`floor ${number(bounds[1])}, ceiling ${number(bounds[2])}`);
  const near = target.diamonds.find(each => Math.abs(each.x - px) < 6);
  if (near) lines.push(near.text + (near.more ? `\nand ${near.more} more changes: zoom in` : ""));
  return lines.join("\n");
}
let isPlanned = false;
function redraw() {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => { isPlanned = false; report.targets.forEach(draw); });
}
function look(from, to) {
  const all = report.minutes * 60, span = Math.min(all, Math.max(600, to - from));
  from = Math.max(0, Math.min(all - span, from));
  view = [from, from + span];
  redraw();
}
function choose(run) {
  chosen = run;
  document.querySelectorAll("tr[data-row]").forEach((row, i) => row.setAttribute("aria-selected", i === run));
  document.querySelectorAll("[data-of]").forEach(part => { part.hidden = Number(part.dataset.of) !== run; });
  redraw();
}
function listen(target) {
  const canvas = target.canvas;
  canvas.addEventListener("pointerdown", event => {
    if (event.pointerType !== "mouse") return;
    canvas.setPointerCapture(event.pointerId);
    const at = target.second(event.offsetX);
    dragged = { from: at, to: at, x: event.offsetX };
  });
  canvas.addEventListener("pointermove", event => {
    cursor = target.second(event.offsetX);
    if (dragged) dragged.to = cursor;
    showTip(explain(target, cursor, event.offsetX), event.clientX, event.clientY);
    redraw();
  });
  canvas.addEventListener("pointerup", event => {
    const drag = dragged;
    dragged = null;
    if (drag && Math.abs(event.offsetX - drag.x) > 5) look(Math.min(drag.from, drag.to), Math.max(drag.from, drag.to));
  });
  canvas.addEventListener("pointerleave", () => { cursor = null; hideTip(); redraw(); });
  canvas.addEventListener("dblclick", () => look(0, report.minutes * 60));
}
async function main() {
  report = await inflate(document.getElementById("data").textContent);
  zone = report.zone || Intl.DateTimeFormat().resolvedOptions().timeZone;
  view = [0, report.minutes * 60];
  for (const time of document.querySelectorAll("time")) {
    const there = local(Date.parse(time.dateTime) / 1000);
    if (there) time.append(`, ${there}`);
  }
  report.targets.forEach((target, i) => { target.canvas = document.querySelectorAll("canvas")[i]; listen(target); });
  const rows = document.querySelectorAll("tr[data-row]");
  const colour = () => { rows.forEach((row, i) => { report.runs[i].colour = getComputedStyle(row).getPropertyValue("--run"); }); redraw(); };
  colour();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", colour);
  rows.forEach((row, i) => {
    const box = row.querySelector("input");
    if (box.checked) shown.add(i);
    box.addEventListener("change", () => { if (box.checked) shown.add(i); else shown.delete(i); redraw(); });
    row.addEventListener("click", event => { if (event.target !== box) choose(i); });
  });
  const moves = {
    in: (from, span) => look(from + span / 4, from + span * 3 / 4), out: (from, span) => look(from - span / 2, from + span * 3 / 2),
    back: (from, span) => look(from - span / 2, from + span / 2), on: (from, span) => look(from + span / 2, from + span * 3 / 2),
    all: () => look(0, report.minutes * 60)
  };
  for (const button of document.querySelectorAll("button[data-move]"))
    button.addEventListener("click", () => moves[button.dataset.move](view[0], view[1] - view[0]));
  addEventListener("resize", redraw);
  choose(0);
  document.body.dataset.ready = "yes";
}
main();
