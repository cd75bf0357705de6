// Copying texts and saving pictures.
const galerasCopy = (() => {
  const wholes = JSON.parse(document.getElementById("whole-texts").textContent);

  /** Puts a text on the clipboard; where the browser has none for us, by a selection. */
  async function put(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      area.setAttribute("readonly", "");
      area.style.position = "fixed";
      area.style.opacity = "0";
      const before = document.activeElement;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      before?.focus?.();
      return done;
    }
  }

  async function copy(text, what) {
    const done = await put(text);
    galerasPage.say(done ? `Copied ${what}.` : "The browser does not let this page copy.");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-copy]");
    if (!button) return;
    const shown = document.getElementById(button.dataset.copy);
    const text = button.dataset.whole ? wholes[button.dataset.whole] : shown.textContent;
    copy(text, `${text.length.toLocaleString("en")} characters`);
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-save-picture]");
    if (!button) return;
    const picture = button.closest("figure").querySelector("img");
    const link = document.createElement("a");
    const source = picture.getAttribute("src");
    const svg = decodeURIComponent(source.slice(source.indexOf(",") + 1));
    link.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    link.download = `${button.dataset.savePicture}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  return { copy };
})();
