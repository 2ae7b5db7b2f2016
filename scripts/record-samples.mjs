// Records the sample sessions whose tools really ran: runs an agent with a script in place of a model, in a temporary
// workspace, and writes the entries of its log to src/cli/commands/serving/sample-recordings.ts.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { main, root, runPackage } from "./run.mjs";
import { ensureBuild, ensurePackages } from "./setup.mjs";

/** The name of the workspace in the recordings, in place of the temporary directory. */
const WORKSPACE = "/workspace";
const out = join(root, "src/cli/commands/serving/sample-recordings.ts");

const FILES = {
  "package.json": '{\n  "name": "countdown",\n  "type": "module",\n  "scripts": { "test": "node --test" }\n}\n',
  "README.md": "# Countdown\n\nShows how many days are left until a date.\n",
  "src/duration.js":
    "const DAY_MS = 24 * 60 * 60 * 1000;\n\n" +
    "/** The days between two dates, rounded up. */\n" +
    "export function daysBetween(from, to) {\n  return Math.ceil((to - from) / DAY_MS);\n}\n\n" +
    "/** A number of days in words. */\n" +
    "export function duration(days) {\n  return `${days} days`;\n}\n",
  "src/page.js":
    'import { daysBetween, duration } from "./duration.js";\n\n' +
    "/** The line on the page. */\n" +
    "export function countdown(now, then) {\n" +
    "  return `${duration(daysBetween(now, then))} left`;\n}\n",
  "test/duration.test.js":
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\n' +
    'import { daysBetween, duration } from "../src/duration.js";\n\n' +
    'test("many days", () => assert.equal(duration(3), "3 days"));\n\n' +
    'test("a part of a day counts as a day", () => {\n' +
    '  assert.equal(daysBetween(new Date("2026-05-01T12:00:00Z"), new Date("2026-05-03T00:00:00Z")), 2);\n});\n',
};

const TEST =
  'import assert from "node:assert/strict";\nimport { test } from "node:test";\n' +
  'import { duration } from "../src/duration.js";\nimport { countdown } from "../src/page.js";\n\n' +
  'test("one day", () => assert.equal(duration(1), "1 day"));\n\n' +
  'test("the last day on the page", () => {\n' +
  '  const [now, then] = [new Date("2026-05-01T00:00:00Z"), new Date("2026-05-02T00:00:00Z")];\n' +
  '  assert.equal(countdown(now, then), "1 day left");\n});\n';

/** The message of the user, and the response of the model: a text with a call, or the answer. */
const TURNS = [
  {
    says: "Our page says “1 days left”. Can you fix that, with a test?",
    rounds: [
      ["I look for the place first.", "list_workspace_files", { recursive: true }],
      ["", "run_shell_command", { command: 'grep -rn "days" src test' }],
      ["The text is made in `duration`.", "read_workspace_file", { path: "src/duration.js" }],
      ["A test that fails comes first.", "write_workspace_file", { path: "test/one-day.test.js", content: TEST }],
      ["It should fail.", "run_shell_command", { command: "node --test" }],
      [
        "It does, for the right reason. Now the fix.",
        "edit_workspace_file",
        {
          path: "src/duration.js",
          old_text: "`${days} days`",
          new_text: '`${days} ${days === 1 ? "day" : "days"}`',
        },
      ],
      ["And once more.", "run_shell_command", { command: "node --test" }],
    ],
    answer:
      "Fixed. `duration(1)` is “1 day” now, and the page says “1 day left”.\n\n" +
      "| file | change |\n|---|---|\n| `src/duration.js` | the plural depends on the number |\n" +
      "| `test/one-day.test.js` | new: one day, alone and on the page |\n\n" +
      "All four tests pass.",
  },
  {
    says: "Does it also work for 0 and for negative numbers?",
    rounds: [
      [
        "I try it.",
        "run_code",
        {
          language: "javascript",
          code: 'import { duration } from "./src/duration.js";\nfor (const days of [-1, 0, 1, 2]) console.log(days, duration(days));\n',
        },
      ],
      ["", "workspace_path_exists", { path: "docs/wording.md" }],
    ],
    answer:
      "- `0` gives “0 days”, which is right in English.\n- `-1` gives “-1 days”. Nothing calls it with a date in the past, so I left it.\n\n" +
      "There is no page about wording. If dates in the past should say “yesterday”, that belongs into `countdown`.",
  },
];

await main(async () => {
  await ensurePackages();
  await ensureBuild();
  const { createAgent, openManager } = await import(pathToFileURL(join(root, "dist/index.js")).href);
  const { scripted } = await import(pathToFileURL(join(root, "dist/models/index.js")).href);
  const workspace = realpathSync(mkdtempSync(join(tmpdir(), "skein-samples-")));
  try {
    for (const [path, text] of Object.entries(FILES)) {
      mkdirSync(dirname(join(workspace, path)), { recursive: true });
      writeFileSync(join(workspace, path), text);
    }
    const replies = TURNS.flatMap((turn, index) => repliesOf(turn, index));
    const model = { ...scripted(replies), provider: "sample", id: "small" };
    const prompt = "You work on a small web page. Write a test before you change code, and keep answers short.";
    const agent = createAgent({ name: "assistant", prompt, model, ask: "never" });
    const manager = await openManager({ store: "memory:", workspace });
    /** @type {string | null} */
    let sessionId = null;
    for (const { says } of TURNS) {
      /** @type {{ readonly sessionId: string }} */
      const answer = await (sessionId === null ? manager.run(agent, says) : manager.run(sessionId, agent, says));
      sessionId = answer.sessionId;
    }
    const tree = await manager.open(sessionId);
    await tree.setName("Fix what one day is called");
    const entries = [];
    for await (const entry of manager.store.read(sessionId)) entries.push(withoutPlace(entry));
    const header = { ...tree.header, cwd: null, sandbox: null };
    const recorded = [
      { header, entries: entries.filter((entry) => entry !== null).map((entry, seq) => ({ ...entry, seq })) },
    ];
    writeFileSync(out, fileOf(JSON.stringify(recorded, null, 2).replaceAll(workspace, WORKSPACE)));
    await runPackage("@biomejs/biome/bin/biome", ["check", "--write", out], { quiet: true, minutesMax: 1 });
    console.log(`${out}: ${entries.length} entries`);
  } finally {
    rmSync(workspace, { recursive: true, force: true });
  }
  return 0;
});

/**
 * The module with the recordings.
 * @param {string} json
 */
function fileOf(json) {
  return `// Made by scripts/record-samples.mjs: change that, and run it again.

/** The log of a session. */
interface Recording {
  readonly header: { readonly createdAt: string; readonly [field: string]: unknown };
  readonly entries: readonly { readonly timestamp: string; readonly [field: string]: unknown }[];
}

/** Sessions whose runs really took place, with the results of their tools. */
export const recordings: readonly Recording[] = ${json};
`;
}

/**
 * An entry without the workspace, which is deleted: tools of a later run must not look for it. Null if nothing else is in it.
 * @param {{ type: string, sandbox?: unknown, claim?: number, phase?: string }} entry
 */
function withoutPlace({ sandbox, ...entry }) {
  const isOnlyPlace = entry.type === "run" && entry.phase === "started" && entry.claim === undefined;
  return sandbox !== undefined && isOnlyPlace ? null : entry;
}

/**
 * The replies of the script to one turn, with the usage that a model would report.
 * @param {typeof TURNS[number]} turn
 * @param {number} turnIndex
 */
function repliesOf({ rounds, answer }, turnIndex) {
  const called = rounds.map(([content, name, input], index) => ({
    content: content === "" ? null : content,
    toolCalls: [{ id: `call_${turnIndex + 1}_${index + 1}`, name, arguments: JSON.stringify(input) }],
    stopReason: "tool_calls",
  }));
  return [...called, { content: answer, stopReason: "stop" }].map(
    (reply) => (/** @type {import("skein").ModelRequest} */ request) => {
      const inputTokens = Math.ceil(JSON.stringify([request.messages, request.tools]).length / 4);
      const outputTokens = Math.ceil(JSON.stringify(reply).length / 4);
      const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
      const cost = (inputTokens + 4 * outputTokens) / 1_000_000;
      return { role: "assistant", provider: "sample", model: "small", usage, cost, ...reply };
    },
  );
}
