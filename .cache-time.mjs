import { launchChromium } from "./scripts/chromium.mjs";
const browser = await launchChromium();
const all = [];
for (let i = 0; i < 6; i++) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await context.newPage();
  const t = Date.now();
  await page.goto(process.argv[2] + "/#/");
  await page.waitForFunction(() => document.querySelectorAll(".home-tile").length === 4 && ![...document.querySelectorAll(".home-tile-value, .home-figures dd")].some((e) => e.textContent === "…") && document.querySelectorAll(".home-session").length > 0 && document.querySelectorAll(".sessions-item").length > 0);
  all.push(Date.now() - t);
  await context.close();
}
console.log(all);
await browser.close();
