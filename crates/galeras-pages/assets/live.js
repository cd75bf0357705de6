// Pages that follow a run: when the server says that something happened, the part of the page that
// is live is fetched again.
(() => {
  const live = document.getElementById("live");
  if (!live || !window.EventSource) return;
  const said = document.getElementById("said");
  let busy = false;
  let again = false;
  const renew = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("live");
        if (fresh) live.replaceChildren(...fresh.childNodes);
      }
    } catch {
      // The server has gone; the next event comes when it is back.
    }
    busy = false;
    if (again) {
      again = false;
      renew();
    }
  };
  const events = new EventSource(live.dataset.events);
  events.addEventListener("change", renew);
  events.addEventListener("error", () => {
    if (said) said.textContent = "The server does not answer; the page may be old.";
  });
  events.addEventListener("open", () => {
    if (said) said.textContent = "";
  });
})();
