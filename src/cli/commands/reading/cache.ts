import { explainCache } from "../../../models/explain-cache.ts";
import type { CacheAnswer, CacheCause, CacheReport } from "../../../session/context/cache-report.ts";
import type { Command, CommandContext } from "../../command.ts";
import { ageOption, countOption } from "../../options/option-values.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";
import { tableLines } from "../../table.ts";
import { printable } from "../../terminal.ts";

const SHOWN_DEFAULT = 20;
const MINUTE_MS = 60_000;

/** Explains what a session had from prompt caches. */
export const cache: Command = {
  name: "cache",
  summary: "Explain what a session's answers had from the providers' prompt caches, and why some had less.",
  details:
    "The re-write factor is the number of tokens that were processed anew, divided by the size of the largest request: 1.00 if every token was processed once.",
  arguments: [SESSION_ARGUMENT],
  options: {
    limit: { value: "N", what: `how many answers to print, the latest ones (default ${SHOWN_DEFAULT})` },
    lifetime: {
      value: "TIME",
      what: "how long the provider was asked to keep its cache, as in 1h (default: what it keeps by itself)",
    },
  },
  examples: [
    { line: "skein cache last", what: "the latest session" },
    { line: "skein cache last --lifetime 1h --json", what: "for a program; the cache was kept for an hour" },
  ],
  json: {
    sessionId: "the session's id",
    rewriteFactor: "tokens processed anew, divided by contextTokens; null without an answer",
    contextTokens: "the tokens of the largest request of each agent, added up",
    inputTokens: "the tokens of all requests",
    readTokens: "how many of these were read from a cache",
    writtenTokens: "how many were not",
    count: "how many answers these are",
    causes: "the answers that read less than expected, and the tokens of these, by type of cause",
    answers:
      "the latest answers: entryId, timestamp, agent, model, inputTokens, expectedTokens, readTokens, rewrittenTokens, cause",
  },
  store: "existing",
  readsOnly: true,
  async run(context) {
    await using store = await context.openStore();
    const { header } = await findSession(store, context.positionals[0] as string);
    const limit = countOption(context.values, "limit") ?? SHOWN_DEFAULT;
    const seconds = ageOption(context.values, "lifetime", 1);
    const lifetimeMs = seconds === undefined ? {} : { lifetimeMs: 1000 * seconds };
    const report = await explainCache(store, header.id, { limit, ...lifetimeMs });
    if (context.json) context.printJson(report);
    else print(context, report);
    return 0;
  },
};

function print({ terminal }: CommandContext, report: CacheReport): void {
  const { rewriteFactor, count, inputTokens, readTokens, writtenTokens, contextTokens, causes, answers } = report;
  if (rewriteFactor === null) {
    terminal.line(`Session ${report.sessionId} has no answer with a usage; there is nothing to explain.`);
    return;
  }
  const share = inputTokens === 0 ? 0 : Math.round((readTokens / inputTokens) * 100);
  terminal.line(
    `Re-write factor ${rewriteFactor.toFixed(2)}: ${writtenTokens} tokens were processed anew, the context has ${contextTokens}.`,
  );
  terminal.line(`Of ${inputTokens} tokens in ${count} requests, ${readTokens} (${share} %) were read from a cache.`);
  terminal.line();
  const right = (title: string) => ({ title, right: true });
  if (causes.length > 0) {
    const rows = causes.map(({ type, answers: number, tokens }) => [WORDS[type], String(number), String(tokens)]);
    for (const line of tableLines([{ title: "READ LESS BECAUSE OF" }, right("ANSWERS"), right("TOKENS ANEW")], rows))
      terminal.line(line);
    terminal.line();
  }
  const rows = answers.map((answer) => [
    answer.timestamp.slice(0, 19),
    ...[answer.inputTokens, answer.expectedTokens, answer.readTokens, answer.rewrittenTokens].map(String),
    causeText(answer),
  ]);
  const columns = [{ title: "TIME" }, ...["INPUT", "EXPECTED", "READ", "ANEW"].map(right), { title: "WHY" }];
  for (const line of tableLines(columns, rows)) terminal.line(line);
}

const WORDS: Readonly<Record<CacheCause["type"], string>> = {
  first: "the first request",
  lifetime: "the cache's lifetime",
  setup: "a changed setup",
  edit: "an edit",
  compaction: "a compaction",
  transform: "a transform",
  branch: "another branch",
  model: "another model",
  provider: "the provider",
  unknown: "an unknown cause",
};

function causeText({ cause }: CacheAnswer): string {
  if (cause === null) return "";
  switch (cause.type) {
    case "lifetime":
      return `${WORDS.lifetime} of ${minutes(cause.lifetimeMs)} was over after ${minutes(cause.gapMs)}`;
    case "setup":
      return `${cause.field} changed${cause.tool === undefined ? "" : `: ${printable(cause.tool, 60)}`}`;
    case "edit":
    case "compaction":
      return `${WORDS[cause.type]}: ${printable(cause.entryId, 60)}`;
    case "model":
      return `${WORDS.model}: ${printable(cause.before, 60)} before`;
    case "provider":
      return `${WORDS.provider}: both requests begin alike`;
    default:
      return WORDS[cause.type];
  }
}

function minutes(ms: number): string {
  return ms < MINUTE_MS ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / MINUTE_MS)} min`;
}
