import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { publicNames } from "../scripts/public-names.mjs";

/** A use of a word that the glossary avoids, and why it is right there. */
interface Allowed {
  readonly words: readonly string[];
  /** The names, the headings or the whole set (`"any"`) in which these words may appear. */
  readonly in: readonly string[] | "any";
  readonly because: string;
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** Pages that use the words of others on purpose: they explain or map them, or describe what was stored under them. */
const othersWords = /^(?:CHANGELOG\.md|docs\/(?:glossary\.md|from-.*|formats\/.*|guides\/with-.*))$/;
const pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...pagesIn("docs")].filter(
  (page) => !othersWords.test(page),
);
/** Generated pages, measurements, pages that list the words to avoid, and walks through code with its names. */
const notProse = /^docs\/(?:cli|benchmarks|architecture|glossary|formats\/versions)\.md$/;
const prose = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...pagesIn("docs")].filter(
  (page) => !notProse.test(page),
);
/** The source files of the package and of the studio, without tests. */
const sources = ["src", "studio/src"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name))
    .map((name) => `${folder}/${name}`),
);
const avoided = avoidedWords(read("docs/glossary.md"));

/** Words of the third column that are ordinary words in names and headings; the row says what they must not replace. */
const ordinary: readonly Allowed[] = [
  {
    words: [
      ...["write", "save", "push", "delete", "check", "verify", "validate", "copy", "clone", "reduce", "copied"],
      ...["acquire", "migrate", "convert", "mask", "resolve", "cleanup", "restart", "reopen", "pending", "waiting"],
    ],
    in: "any",
    because:
      "a verb or an adjective of every program; it is wrong only where an append, a purge or a recovery is meant",
  },
  {
    words: [
      "request",
      "message",
      "error",
      "action",
      "api",
      "function",
      "tail",
      "access",
      "item",
      "key",
      "index",
      "chunk",
    ],
    in: "any",
    because: "the ordinary technical term for another thing than the row is about, such as an HTTP request",
  },
  {
    words: definedWords(read("docs/glossary.md")),
    in: "any",
    because: "a word of the glossary itself: it has a meaning of its own, and another row only tells the two apart",
  },
];

const allowedInNames: readonly Allowed[] = [
  {
    words: ["prompt"],
    in: ["PromptCache", "promptCache", "PromptCacheInit", "PromptCacheUsage"],
    because: "the prompt cache of a provider, which is its own word for it",
  },
  {
    words: ["compact"],
    in: ["compact", "CompactOptions", "shouldCompact", "CompactRequest", "CompactView"],
    because: "compaction of a context; the row tells it apart from compressing a session value",
  },
  {
    words: ["chat"],
    in: ["chatHandler", "ChatTransportInit", "createChatTransport", "SkeinChatTransport"],
    because: "named after `useChat` of the AI SDK",
  },
  {
    words: ["info"],
    in: ["AgentInfo", "ContextInfo", "GroupInfo", "LeaseInfo", "ModelInfo", "RunningInfo"],
    because: "a view of a thing, not a header",
  },
  { words: ["sync"], in: ["runSync"], because: "synchronous" },
  {
    words: ["record"],
    in: ["SandboxRecord", "RecordUsageOptions"],
    because: "a record of the registry of sandboxes; a verb",
  },
  {
    words: ["journal"],
    in: ["LineageJournal", "exportJournalJsonl", "ExportJournalOptions"],
    because: "OpenRath's word for the sessions that a scope has made; no log",
  },
  {
    words: ["foreign"],
    in: [
      "ForeignBody",
      "ForeignDraft",
      "ForeignEntry",
      "ForeignFormat",
      "ForeignHeader",
      "ForeignLine",
      "ForeignLogSink",
      "ForeignReader",
      "ForeignSink",
      "ForeignSource",
      "FOREIGN_FORMATS",
      "foreignFormat",
      "ForeignReading",
      "ForeignSession",
      "readForeign",
      "ForeignWriting",
      "WriteForeignOptions",
      "writeForeign",
      "importForeign",
    ],
    because: "of another program's format, before it is imported",
  },
  {
    words: ["restore"],
    in: ["RestoreOptions", "RestoreRequest"],
    because: "restoring a checkpoint; the row is about imports",
  },
  {
    words: ["window"],
    in: ["contextWindowOf", "registerContextWindows"],
    because: "the size of a model's context, which providers call its window",
  },
  {
    words: ["state"],
    in: [
      "SessionState",
      "ManagedStateOptions",
      "StateOptions",
      "OpenRunState",
      "StateDiff",
      "SessionStateMachine",
      "StateRow",
    ],
    because: "the fold at a leaf, which the glossary calls state; the state of a run",
  },
  {
    words: ["middleware"],
    in: ["sessionMiddleware", "SessionMiddlewareOptions", "ExpressMiddleware", "SessionMiddleware"],
    because: "middleware of web frameworks",
  },
  {
    words: ["filter"],
    in: ["TurnFilter"],
    because: "leaves out turns; the row is about functions that rewrite a request",
  },
  {
    words: ["notification"],
    in: ["NotificationHandler"],
    because: "what a queue delivers; the row is about events of a run",
  },
  { words: ["runner"], in: ["HookRunner"], because: "runs hooks" },
  { words: ["cluster"], in: ["OfficialRedisCluster"], because: "a cluster of Redis" },
  { words: ["assistant"], in: ["AssistantMessage", "assistantRow"], because: "the role of a message" },
  { words: ["policy"], in: ["AskPolicy"], because: "the type of the option `ask`" },
  { words: ["scope"], in: ["SessionModuleScope"], because: "the scope of a NestJS module" },
  {
    words: ["provider"],
    in: ["ModelProviderFactory", "ModelProviderOptions", "registerModelProvider"],
    because: "a provider of models",
  },
  { words: ["issue"], in: ["ConfigIssue"], because: "Lexigram's name for a problem of a config" },
  { words: ["sdk"], in: ["AiSdkModel", "AiSdkOptions", "aiSdk"], because: "the AI SDK" },
  { words: ["role"], in: ["RoleIsolation"], because: "the role of an agent in a group" },
  { words: ["key"], in: ["KeyDiff", "AggregateKey", "TranscriptKey"], because: "a key of an object, not an API token" },
  { words: ["listen"], in: ["ListenOptions"], because: "listening to a queue; the row is about entries" },
];

const allowedInDocs: readonly Allowed[] = [
  { words: ["prompt"], in: ["Prompt caches"], because: "the prompt cache of a provider, which is its own word for it" },
  {
    words: ["chat"],
    in: ["chat", "Chat", "A chat service", "How long a chat stays", "ChatController", "chats"],
    because: "the program `skein chat`, and applications whose users chat",
  },
  { words: ["compact", "restore"], in: ["compact", "restore"], because: "a command of the program" },
  { words: ["provider"], in: ["What is the same for every provider"], because: "a provider of models" },
  {
    words: ["middleware"],
    in: ["15. HTTP server, middleware and command line: packages and schemas"],
    because: "middleware of web frameworks",
  },
  { words: ["root"], in: ["If your program runs as root"], because: "the account root" },
  { words: ["messages"], in: ["messages"], because: "the messages of a request to a model, which are no transcript" },
  { words: ["state"], in: ["state"], because: "the fold at a leaf" },
  { words: ["journal"], in: ["journal"], because: "OpenRath's word for the sessions that a scope has made" },
  { words: ["role"], in: ["roles"], because: "the roles in a JSON web token of another service" },
];

/** Metaphors and understatements of earlier versions, each with the term that readers search for. */
const metaphors: readonly (readonly [phrase: RegExp, term: string])[] = [
  [/\bbells?\b|\brings? the\b/i, "queue, notify"],
  [/\bdoorkeeper\b|\bmay come in\b|\blet in\b/i, "authenticator, access"],
  [/\b(?:is|are|as) words\b|\bwords, not authority\b/i, "untrusted"],
  [/\b(?:is|are|was) void\b/i, "discarded"],
  [/\blet(?:s|ting)? go of\b/i, "release"],
  [/\bgone on with\b|\bgoes on with\b/i, "continue, recover"],
  [/\bwhoever\b/i, "the caller, the holder, the author"],
  [/\bfor ever\b/i, "without a limit"],
  [/\bbrought back\b|\bbrings? back\b/i, "restore, undelete"],
  [/\btold live\b/i, "live events"],
  [/\bbehind (?:your|anyone's) back\b/i, "unnoticed"],
];

/** Names of earlier versions; the changelog has the names that replaced the exported ones. */
const replacedNames = new RegExp(
  `\\b(?:${[
    ...["LogEar", "RunEars", "hearNow", "LiveTeller", "LiveHearer", "Lookers", "RunStory", "AnswerTeller"],
    ...["AnswerFact", "ToldCall", "SaidOnce", "Doorkeeper", "LeftRuns", "inLine", "RunBell", "bullmqBell"],
    ...["inProcessBell", "BellCounts", "HeadPlace", "RunsWord", "ApprovalWord", "DenialWord", "tellsCost"],
  ].join("|")})\\b`,
  "g",
);

describe("a word that the glossary avoids", () => {
  test("is in no exported name, but for those with a reason", () => {
    const names = [...new Set(publicNames().map(({ name }) => name))];
    expect(names.length).toBeGreaterThan(500);
    expect(misused(names, allowedInNames)).toEqual([]);
    expect(unused(names, allowedInNames)).toEqual([]);
  });

  test("is in no heading of the documents, but for those with a reason", () => {
    const headings = pages.flatMap((page) =>
      [...withoutCode(read(page)).matchAll(/^#+ (.+)$/gm)].map(([, text = ""]) => text),
    );
    expect(headings.length).toBeGreaterThan(200);
    expect(misused(headings, allowedInDocs)).toEqual([]);
  });

  test("is in no name that an example of the documents declares", () => {
    const declared = pages.flatMap((page) =>
      [...codeOf(read(page)).matchAll(/\b(?:const|let|function|class) (\w+)/g)].map(([, name = ""]) => name),
    );
    expect(declared.length).toBeGreaterThan(100);
    expect(misused([...new Set(declared)], [...allowedInNames, ...allowedInDocs])).toEqual([]);
  });
});

describe("a metaphor", () => {
  test.for(metaphors)("such as %s is in no document, which has %s instead", ([phrase]) => {
    const found = prose.flatMap((page) =>
      withoutCode(read(page))
        .split("\n")
        .filter((line) => phrase.test(line))
        .map((line) => `${page}: ${line.slice(0, 120)}`),
    );
    expect(found).toEqual([]);
  });

  test.for(metaphors)("such as %s is in no comment of the sources, which have %s instead", ([phrase]) => {
    expect(sources.length).toBeGreaterThan(500);
    const found = sources.flatMap((path) => commentsOf(read(path)).filter((comment) => phrase.test(comment)));
    expect(found).toEqual([]);
  });
});

test("no name of an earlier version that plain words replaced is in the sources", () => {
  const found = sources.flatMap((path) => read(path).match(replacedNames) ?? []);
  expect(found).toEqual([]);
});

/** The uses of avoided words in texts, as `text: word`, without those that are allowed. */
function misused(texts: readonly string[], allowed: readonly Allowed[]): string[] {
  return texts.flatMap((text) =>
    wordsOf(text)
      .filter((word) => avoided.has(word) && !isAllowed(text, word, [...ordinary, ...allowed]))
      .map((word) => `${text}: ${word}, instead of ${avoided.get(word)}`),
  );
}

/** Exceptions that nothing needs any more. */
function unused(texts: readonly string[], allowed: readonly Allowed[]): string[] {
  return allowed.flatMap((each) => (each.in === "any" ? [] : each.in.filter((text) => !texts.includes(text))));
}

function isAllowed(text: string, word: string, allowed: readonly Allowed[]): boolean {
  return allowed.some((each) => each.words.includes(word) && (each.in === "any" || each.in.includes(text)));
}

/** The words of a name or a sentence: `openStore` and `OPEN_STORE` are two words. */
function wordsOf(text: string): string[] {
  const apart = text.replace(/([a-z0-9])([A-Z])/g, "$1 $2").toLowerCase();
  return (apart.match(/[a-z]+/g) ?? []).map((word) => (avoided.has(word) ? word : word.replace(/s$/, "")));
}

/** Each word of the third column, with the word of the first that is meant. Words of several parts are left out. */
function avoidedWords(glossary: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, word = "", , not = ""] of rowsOf(glossary)) {
    for (const each of not.replace(/\([^)]*\)/g, "").split(",")) {
      const avoidedWord = each.trim().toLowerCase();
      if (/^[a-z]+$/.test(avoidedWord)) found.set(avoidedWord, word.replaceAll("`", ""));
    }
  }
  return found;
}

function definedWords(glossary: string): string[] {
  return rowsOf(glossary).flatMap(([, word = ""]) => word.toLowerCase().replaceAll("`", "").split(", "));
}

/** The cells of the rows of the first table. */
function rowsOf(glossary: string): string[][] {
  const [table = ""] = glossary.split("## Words that people look for");
  const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| word |"));
  return rows.map((row) => row.split("|").map((cell) => cell.trim()));
}

function codeOf(text: string): string {
  return [...text.matchAll(/^```(?:ts|tsx|js)\b.*\n([\s\S]*?)^```/gm)].map(([, code = ""]) => code).join("\n");
}

/** The comments of a source, each on one line. */
function commentsOf(source: string): string[] {
  const comments = source.matchAll(/\/\*[\s\S]*?\*\/|(?:^|\s)\/\/ .*$/gm);
  return [...comments].map(([comment]) => comment.replace(/\s+\*?\s*/g, " "));
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, "");
}

function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `${folder}/${name}`);
}
