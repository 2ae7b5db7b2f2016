import type { Page } from "playwright-core";
import { launchChromium } from "../../scripts/chromium.mjs";

const VIEWPORT = { width: 1280, height: 800 } as const;

/** Chromium with pages of the studio. */
export interface StudioBrowser extends AsyncDisposable {
  /** Opens a session's transcript in a new tab with an empty cache, and runs `script` before anything else. */
  open(sessionId: string, script: string): Promise<StudioPage>;
  /** The same for the first page. */
  openOverview(script: string): Promise<StudioPage>;
}

/** A tab; disposing closes it. */
export interface StudioPage extends AsyncDisposable {
  readonly page: Page;
}

/** Starts the installed Chromium, or that of SKEIN_TEST_CHROMIUM, for a server. */
export async function startBrowser(url: string): Promise<StudioBrowser> {
  const browser = await launchChromium();
  const openAt = async (path: string, script: string): Promise<StudioPage> => {
    const context = await browser.newContext({ viewport: VIEWPORT });
    await context.addInitScript(script);
    const page = await context.newPage();
    await page.goto(`${url}/${path}`, { waitUntil: "commit" });
    return { page, [Symbol.asyncDispose]: () => context.close() };
  };
  return {
    open: (sessionId, script) => openAt(`#/sessions/${sessionId}/talk`, script),
    openOverview: (script) => openAt("#/", script),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}
