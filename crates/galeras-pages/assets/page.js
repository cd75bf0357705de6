"use strict";
// What every page has: the switch of themes, folded parts that open when something leads to them,
// and everything open on paper. Nothing here is needed to read the page.
const galerasPage = (() => {
  const said = document.getElementById("said");
  let silence = 0;

  /** Says something to everybody: seen at the bottom of the window, and read aloud. */
  function say(text) {
    said.textContent = text;
    clearTimeout(silence);
    silence = setTimeout(() => { said.textContent = ""; }, 4000);
  }

  /** Opens an element and all that it is folded in. */
  function unfold(element) {
    for (let at = element; at; at = at.parentElement) {
      if (at instanceof HTMLDetailsElement) at.open = true;
    }
  }

  function unfoldTarget() {
    let id = location.hash.slice(1);
    // A half-written address is an id as it stands.
    try { id = decodeURIComponent(id); } catch { /* as it stands */ }
    const target = id && document.getElementById(id);
    if (!target) return;
    unfold(target);
    target.scrollIntoView();
  }

  function theme() {
    const key = "galeras-theme";
    const buttons = [...document.querySelectorAll("[data-theme-choice]")];
    const apply = (choice) => {
      if (choice === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = choice;
      for (const button of buttons) {
        button.setAttribute("aria-pressed", String(button.dataset.themeChoice === choice));
      }
    };
    let kept = "auto";
    // A browser may keep nothing for files.
    try { kept = localStorage.getItem(key) || "auto"; } catch { kept = "auto"; }
    apply(["light", "dark"].includes(kept) ? kept : "auto");
    for (const button of buttons) {
      button.addEventListener("click", () => {
        apply(button.dataset.themeChoice);
        try { localStorage.setItem(key, button.dataset.themeChoice); } catch { /* not kept */ }
      });
    }
  }

  function paper() {
    let folded = [];
    addEventListener("beforeprint", () => {
      folded = [...document.querySelectorAll("details:not([open])")];
      for (const details of folded) details.open = true;
    });
    addEventListener("afterprint", () => {
      for (const details of folded) details.open = false;
      folded = [];
    });
  }

  /** Shows what only works with this script. */
  function reveal(root) {
    for (const element of root.querySelectorAll(".js[hidden]")) element.hidden = false;
  }

  theme();
  paper();
  reveal(document);
  addEventListener("hashchange", unfoldTarget);
  addEventListener("DOMContentLoaded", unfoldTarget);
  return { say, unfold, reveal };
})();
