// Drives Chromium for view_browser.py: reads a request from standard input, lets each person visit a
// page and press keys, and writes what they saw.
"use strict";

const { chromium } = require("playwright-core");
const read = async () => {
  let text = "";
  for await (const part of process.stdin) text += part;
  return JSON.parse(text);
};
(async () => {
  const request = await read();
  const launched = await chromium.launch({
    executablePath: request.chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
  });
  const errors = [];
  const person = async (of) => {
    const viewport = of.viewport || { width: 1200, height: 900 };
    const context = await launched.newContext({ viewport });
    const page = await context.newPage();
    page.on("console", (message) => {
      if (message.type() === "error") errors.push(message.text());
    });
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("request", (sent) => {
      const own = sent.url().startsWith(of.origin) || sent.url().startsWith("data:");
      if (!own) errors.push(sent.url());
    });
    await page.goto(of.address);
    await page.waitForURL(of.origin + "/");
    if (of.visit) await page.goto(of.origin + of.visit);
    const seen = [];
    for (const key of of.keys || []) {
      const before = page.url();
      const point = await page.getAttribute("#review", "data-point");
      if (key.startsWith("text:")) {
        await page.keyboard.type(key.slice(5));
        continue;
      }
      await page.keyboard.press(key);
      if (!["t", "Escape"].includes(key)) await page.waitForURL((url) => String(url) !== before);
      seen.push([key, point, new URL(page.url()).pathname]);
    }
    const grave = [];
    for (const scheme of of.axe ? ["light", "dark"] : []) {
      await page.emulateMedia({ colorScheme: scheme });
      // As text: the policy of the page is for what is in the page.
      await page.evaluate(require("axe-core").source);
      const found = await page.evaluate("axe.run()");
      for (const rule of found.violations) {
        if (!["serious", "critical"].includes(rule.impact)) continue;
        grave.push(`${scheme}: ${rule.id} ${rule.nodes[0].html.slice(0, 200)}`);
      }
    }
    const width = await page.evaluate("document.documentElement.scrollWidth");
    if (width > viewport.width) grave.push(`${width} pixels wide`);
    const attacked = await page.evaluate("window.attacked ?? null");
    const hidden = await page.$$eval(".hidden-char", (all) => all.map((one) => one.textContent));
    const bytes = (await page.content()).length;
    if (of.picture) await page.screenshot({ path: of.picture, fullPage: Boolean(of.full) });
    const text = await page.innerText("main");
    const rows = await page.$$eval("tbody tr", (all) =>
      all.map((row) => [...row.children].map((cell) => cell.dataset.raw ?? cell.innerText)));
    return { seen, text, rows, grave, attacked, hidden, bytes, url: page.url(), page, context };
  };
  const people = await Promise.all(request.people.map(person));
  let live = null;
  if (request.live) {
    const { spawn } = require("child_process");
    const page = people[0].page;
    await page.evaluate(() => { window.stayed = true; });
    const run = spawn(request.live[0], request.live.slice(1), { cwd: request.folder, stdio: "ignore" });
    // (the policy of the page lets no function be evaluated in it again and again)
    await page.locator('tr[data-state="done"]').nth(2).waitFor({ timeout: 60000 });
    await new Promise((resolve) => (run.exitCode === null ? run.on("exit", resolve) : resolve()));
    live = await page.evaluate(() => window.stayed === true);
  }
  const answer = people.map(({ page, context, ...told }) => told);
  await launched.close();
  process.stdout.write(JSON.stringify({ people: answer, errors, live }));
})().catch((error) => { console.error(error); process.exit(1); });
