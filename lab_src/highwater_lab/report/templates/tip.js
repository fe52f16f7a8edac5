const tip = document.getElementById("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const room = document.documentElement.clientWidth;
  tip.style.left = Math.max(4, Math.min(x + 12, room - tip.offsetWidth - 4)) + scrollX + "px";
  tip.style.top = y + 16 + scrollY + "px";
}
const hideTip = () => { tip.hidden = true; };
for (const word of document.querySelectorAll("abbr")) {
  const explain = () => { const box = word.getBoundingClientRect(); showTip(word.dataset.tip, box.left, box.bottom - 10); };
  word.tabIndex = 0;
  word.addEventListener("pointerenter", explain);
  word.addEventListener("focus", explain);
  word.addEventListener("pointerleave", hideTip);
  word.addEventListener("blur", hideTip);
}
