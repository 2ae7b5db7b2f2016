import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { makeDirectory } from "../moving/sample-store.ts";
import { readDocPages } from "../../src/cli/docs/doc-pages.ts";
import { indexDocs, searchDocs } from "../../src/cli/docs/search-docs.ts";
import { DOCS } from "../../src/cli/package-files.ts";
import { jsonOf, runHere } from "./run-skein.ts";

const index = indexDocs(await readDocPages(DOCS));

/** Each question of a newcomer: what they search for, at most twice, and what the page that answers it says. */
// biome-ignore format: a table reads best with one question per line.
const questions: readonly [question: string, searches: readonly string[], page: RegExp, answer: RegExp][] = [
  ["What does each user cost me?", ["cost per user"], /questions|what-each-customer|what-it-costs/, /stats --user|by user|each user|customer/],
  ["Can secrets be redacted?", ["redact secrets", "remove secrets"], /questions|export/, /secrets/],
  ["How do I leave one message out of the context?", ["leave a message out of the context"], /questions|context/, /omit/],
  ["Can I send images?", ["images", "send an image"], /questions|images|which-one/, /image/i],
  ["Is it encrypted?", ["encryption at rest"], /what-is-encrypted/, /encrypts nothing itself/],
  ["Can I run it on two machines?", ["two machines"], /questions|many-machines/, /queue/],
  ["How do I use it in Next.js?", ["next.js route handler"], /nextjs/, /route handler/],
  ["How do I test my agent without a model?", ["test without a model"], /questions|models/, /scripted/],
  ["How do I come from Mastra?", ["migrate from mastra"], /from-mastra/, /Mastra/],
  ["How do I come from tables of the AI SDK?", ["migrate ai sdk messages table"], /from-ai-sdk-tables/, /UIMessage/],
  ["Does it have OpenTelemetry?", ["opentelemetry"], /questions|runs/, /span/],
  ["How do several agents hand over to each other?", ["multiple agents handoff", "agents hand over"], /agents-that-hand-over|groups/, /agent/],
  ["How do I schedule a run?", ["schedule a run every day", "cron"], /scheduling/, /notBefore|cron/],
  ["What if two browsers have a session open?", ["two browsers same session"], /questions/, /SESSION_BUSY/],
  ["How do I evaluate answers?", ["evals", "evaluation"], /questions/, /Not yet/],
  ["Does it run on Bun or Deno?", ["bun deno"], /bun-and-deno/, /Bun/],
  ["Can it recall earlier sessions?", ["memory recall over sessions"], /questions|earlier-sessions/, /earlier sessions/i],
  ["Can another model answer if one is down?", ["fallback model"], /a-fallback-model/, /another model answers/],
  ["Does it work behind PgBouncer?", ["pgbouncer"], /questions|stores/, /prepare: false/],
  ["How do I upgrade?", ["upgrade to a new version"], /questions/, /migrated when it is opened/],
  ["Can I drop a message?", ["drop a message"], /questions/, /tree\.omit/],
  ["What about two tabs?", ["two tabs"], /questions/, /SESSION_BUSY/],
  ["Can I delete a user's data?", ["delete user data gdpr"], /questions/, /skein erase/],
  ["Is there a Python client?", ["python"], /questions/, /HTTP API/],
  ["I use LangChain.", ["langchain"], /questions|from-langgraph/, /LangGraph/],
  ["Does it use prompt caching?", ["prompt caching"], /questions|models|what-it-costs/, /cache/],
];

test.each(questions)("a newcomer who asks “%s” finds the answer within two searches", (_, searches, page, answer) => {
  const found = searches.flatMap((words) => searchDocs(index, words, 3));
  const answering = found.filter((hit) => page.test(hit.page.name) && answer.test(hit.section.text));
  expect(searches.length).toBeLessThanOrEqual(2);
  expect(answering, found.map((hit) => `${hit.page.name}: ${hit.section.heading}`).join("\n")).not.toEqual([]);
});

/** The same questions in the words of other libraries, one search each. */
const wordings: readonly [search: string, page: string][] = [
  ["price per customer", "questions#cost-per-user"],
  ["remove personal data from logs", "questions#redaction"],
  ["exclude a single message from the prompt", "questions#leaving-one-message-out-of-the-context"],
  ["hide a message from the model", "questions#leaving-one-message-out-of-the-context"],
  ["upload a picture", "guides/images-and-files#"],
  ["vision", "guides/images-and-files#"],
  ["encrypt database", "recipes/what-is-encrypted#"],
  ["horizontal scaling", "guides/many-machines#"],
  ["nextjs app router", "recipes/nextjs#"],
  ["unit test my agent", "questions#testing-agents-without-a-model"],
  ["mock the model", "questions#testing-agents-without-a-model"],
  ["move chats from vercel ai sdk postgres", "recipes/from-ai-sdk-tables#"],
  ["otel spans", "guides/runs#telemetry"],
  ["run every night", "recipes/scheduling#"],
  ["concurrent users same session", "questions#two-browsers-or-tabs-at-once"],
  ["evals", "questions#evaluation"],
  ["evaluate quality of answers", "questions#evaluation"],
  ["deno", "recipes/bun-and-deno#"],
  ["long term memory", "guides/earlier-sessions#"],
  ["model fallback", "recipes/a-fallback-model#"],
  ["connection pooling", "questions#pgbouncer"],
  ["breaking changes", "questions#upgrades"],
  ["cache hit rate", "guides/what-it-costs#"],
];

test.each(wordings)("“%s” finds %s", (words, expected) => {
  const found = searchDocs(index, words, 3).map(({ page, section }) => `${page.name}#${section.anchor}`);
  expect(found).toContain(expected);
});

test("each term of other libraries in the glossary finds a page that the glossary links", async () => {
  const [, table = ""] = (await readFile(join(DOCS, "glossary.md"), "utf8")).split("## Words that people look for");
  const rows = [...table.matchAll(/^\| ([^|]+) \| [^|]+ \| (.*\]\(.*) \|$/gm)];
  const missing = rows.flatMap(([, terms = "", links = ""]) => {
    const linked = [...links.matchAll(/\]\(([\w/-]+)\.md/g)].map(([, page]) => page);
    const found = (term: string) => searchDocs(index, term, 4).map(({ page }) => page.name);
    // `skein chat` has a page of its own.
    return terms.split(", ").filter((term) => term !== "chat" && !found(term).some((page) => linked.includes(page)));
  });
  expect(rows.length).toBeGreaterThan(30);
  expect(missing).toEqual([]);
});

test("shows the pages that were found, the best section, a page by its name and a section of it", async () => {
  const { stdout } = await runHere(["docs", "fallback", "model"]);
  expect(stdout).toMatch(/^recipes\/a-fallback-model {2}A fallback model\n/);
  expect(stdout).toContain("When a provider is down");
  expect(stdout).toContain("The whole page: skein docs recipes/a-fallback-model");
  const { pages: hits } = await jsonOf("docs", "fallback", "model");
  expect((hits as readonly object[])[0]).toMatchObject({ page: "recipes/a-fallback-model", anchor: "" });
  const page = (await runHere(["docs", "guides/runs.md"])).stdout;
  const section = (await runHere(["docs", "runs#telemetry"])).stdout;
  expect(section).toMatch(/^Telemetry\n\nIf `@opentelemetry\/api` is installed/);
  expect(page).toContain(section.split("\n")[2]);
  // Links and marks of tables are not for a terminal.
  expect(page).not.toMatch(/\]\(|^\|/m);
});

test("lists all pages without words, and says so when nothing was found", async () => {
  const { stdout } = await runHere(["docs"]);
  expect(stdout).toMatch(/^guides\/runs {2}Runs: /m);
  expect(stdout).not.toContain("decisions/");
  const nothing = await runHere(["docs", "xylophone"]);
  expect([nothing.code, nothing.stdout]).toEqual([1, ""]);
  expect(nothing.stderr).toMatch(/^No page has these words/);
  const mistyped = await runHere(["docs", "runs#telemetri"]);
  expect([mistyped.code, mistyped.stderr]).toEqual([2, expect.stringContaining("#telemetri")]);
  expect(mistyped.stderr).toContain("telemetry");
});

test("--open writes the page to a separate file and opens it", async () => {
  const directory = await makeDirectory();
  const opened = join(directory, "opened");
  for (const name of ["xdg-open", "open"]) {
    await mkdir(join(directory, "bin"), { recursive: true });
    await writeFile(
      join(directory, "bin", name),
      `#!/bin/sh\necho "$1" > "${opened}.part" && mv "${opened}.part" "${opened}"\n`,
    );
    await chmod(join(directory, "bin", name), 0o755);
  }
  vi.stubEnv("PATH", `${join(directory, "bin")}:${process.env["PATH"]}`);
  vi.stubEnv("TMPDIR", directory);
  onTestFinished(() => void vi.unstubAllEnvs());
  const { code, stdout } = await runHere(["docs", "guides/tools", "--open"]);
  expect(code).toBe(0);
  await vi.waitFor(async () => expect(await readFile(opened, "utf8")).toBe(stdout), 20_000);
  const html = await readFile(stdout.trim(), "utf8");
  expect(html).toContain("<title>Tools");
  expect(html).toContain("<td>");
  expect(html).not.toContain("<script");
});
