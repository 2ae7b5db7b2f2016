import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect, type TestContext, test } from "vitest";
import { chromiumMissing, launchChromium } from "../../scripts/chromium.mjs";
import { onFileEnd } from "../on-file-end.ts";
import { skipBecause } from "../skip.ts";
import { type ServerKind, StudioServer } from "./studio-server.ts";

const ACTION_MS_MAX = 60_000;

let browser: Promise<Browser> | null = null;
const servers = new Map<ServerKind, Promise<StudioServer>>();

async function close(): Promise<void> {
  const [opened, started] = [browser, [...servers.values()]];
  browser = null;
  servers.clear();
  await (await opened)?.close();
  for (const server of started) await (await server)[Symbol.asyncDispose]();
}

/** How a page is opened. */
export interface PageOptions extends Pick<BrowserContextOptions, "colorScheme" | "viewport"> {
  /** The URL; a path of the studio begins with `#`. */
  readonly at?: string;
  /** Console errors that the test causes on purpose. */
  readonly mayFail?: RegExp;
}

/** The tools of a browser test. */
export interface BrowserTest {
  readonly server: StudioServer;
  readonly context: TestContext;
  /** Opens a tab with separate storage. Any error in it fails the test. */
  open(options?: PageOptions): Promise<Page>;
}

/** A test with a real browser and a real server, which the tests of a file share; skipped without Chromium. */
export function browserTest(
  name: string,
  body: (given: BrowserTest) => Promise<void>,
  { server: kind = "serve" }: { readonly server?: ServerKind } = {},
): void {
  test(name, async (context) => {
    const missing = chromiumMissing();
    if (missing !== null) skipBecause(context, missing);
    onFileEnd(close);
    const started = servers.get(kind) ?? StudioServer.start(kind);
    servers.set(kind, started);
    const server = await started;
    const problems: string[] = [];
    const closing: (() => Promise<void>)[] = [];
    const open = async (options: PageOptions = {}): Promise<Page> => {
      const { page, close } = await openPage(server.url, options, problems);
      closing.push(close);
      return page;
    };
    try {
      await body({ server, context, open });
      expect(problems, "what went wrong in the pages").toEqual([]);
    } finally {
      for (const close of closing) await close();
    }
  });
}

async function openPage(
  url: string,
  { at = "", mayFail, ...options }: PageOptions,
  problems: string[],
): Promise<{ page: Page; close: () => Promise<void> }> {
  browser ??= launchChromium();
  const context = await (await browser).newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(ACTION_MS_MAX);
  const page = await context.newPage();
  const note = (text: string): void => {
    if (mayFail?.test(text) !== true) problems.push(text);
  };
  // A violation of the content security policy is an error on the console.
  page.on("console", (message) => {
    if (message.type() === "error") note(message.text());
  });
  page.on("pageerror", (error) => note(`${error}`));
  page.on("dialog", (dialog) => {
    note(`A ${dialog.type()} says ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(at.includes("://") ? at : `${url}/${at}`);
  return { page, close: () => context.close() };
}
