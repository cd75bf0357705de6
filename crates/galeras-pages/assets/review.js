// Keys of the page for reviews: y, n, u answer the current question, j and k (or the arrows) move, z
// takes back, t goes to the note. What a key does is what the button or link with it does.
(() => {
  const review = document.getElementById("review");
  if (!review) return;
  const within = () => document.getElementById("current") || review;
  const moves = { ArrowDown: "j", ArrowRight: "j", ArrowUp: "k", ArrowLeft: "k" };
  let gone = false;
  window.addEventListener("pageshow", () => {
    gone = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target instanceof HTMLInputElement;
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "Enter") {
        event.preventDefault();
        event.target.form.querySelector(".keep-note").click();
      }
      return;
    }
    if (event.target instanceof HTMLElement && event.target.closest("pre") && event.key in moves) return;
    const key = moves[event.key] || event.key;
    if (!/^[ynujkzt]$/.test(key) || event.repeat) return;
    const found =
      within().querySelector(`[data-key="${key}"]`) || review.querySelector(`[data-key="${key}"]`);
    if (!found) return;
    event.preventDefault();
    if (key === "t") {
      found.focus();
      return;
    }
    // One key, one answer: the page is on its way.
    if (gone) return;
    gone = true;
    found.click();
  });
})();
