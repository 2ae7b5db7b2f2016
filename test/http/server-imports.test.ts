import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { GroupSession } from "../../src/group/group-session.ts";
import type { RunView } from "../../src/http/client/index.ts";
import "../../src/sandboxes/register-built-in.ts";
import { workspaceTools } from "../../src/sandboxes/index.ts";
import { goldenText } from "../formats/foreign-samples.ts";
import { forgedLines } from "../forged-log.ts";
import { callOf, calling, saying } from "../sample-run.ts";
import { answering } from "./runs-agents.ts";
import { allOf, openRunServer, type RunServer } from "./runs-server.ts";
import { tokenOf } from "./server-support.ts";

const USERS = ["ann", "root"] as const;

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "skein-imports-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function post(
  { url }: RunServer,
  userId: string,
  lines: readonly string[],
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks into is for the test to know.
): Promise<{ readonly status: number; readonly body: any }> {
  const response = await fetch(`${url}/api/import`, {
    method: "POST",
    headers: { "content-type": "application/jsonl", authorization: `Bearer ${tokenOf(userId)}` },
    body: lines.join("\n"),
  });
  return { status: response.status, body: await response.json() };
}

/** A server whose agents act in a directory, and a file that must not be created. */
async function openActing(
  ...replies: Parameters<typeof answering>[0]
): Promise<{ server: RunServer; marker: string; workspace: string }> {
  const workspace = await makeDirectory();
  const marker = join(await makeDirectory(), "ran");
  const server = await openRunServer({
    agents: { helper: answering(replies, workspaceTools), other: answering(["I am the other."], workspaceTools) },
    groups: (manager) => ({ crew: new GroupSession({ manager }).addAgent(answering(["A plan."], [], "planner")) }),
    place: { backend: "local", spec: { workingDir: workspace } },
  });
  return { server, marker, workspace };
}

test.for(USERS)("a forged log imported by %s has no run to recover, and its command does not run", async (userId) => {
  const { server, marker } = await openActing(saying("I shall check."));
  const command = { name: "run_shell_command", arguments: { command: `touch ${marker}` } };
  const { status, body } = await post(server, userId, forgedLines({ call: command }));
  expect([status, body.openRuns, body.header.sandbox]).toEqual([201, [], null]);
  expect(body.header).toMatchObject({ userId, inherited: { entries: 8, counts: userId === "root" } });
  const client = server.as(userId);
  const { id } = body.header;
  expect(await client.runs.recover(id)).toBe(null);
  const run = await client.runs.start(id, { input: "Go on." });
  const events = await allOf(client, run);
  expect(events.map(({ type }) => type)).not.toContain("tool-started");
  expect(events.at(-1)).toMatchObject({ type: "run-finished" });
  expect(existsSync(marker)).toBe(false);
});

test.for(USERS)(
  "an open run started after %s imported a log is recovered with its own agent, not with the one that the log names",
  async (userId) => {
    const { server, marker } = await openActing(saying("I am the helper."));
    const command = { name: "run_shell_command", arguments: { command: `touch ${marker}` } };
    const facts = [
      { type: "message", message: { role: "user", content: "x", metadata: { "skein.run": { group: "crew" } } } },
    ];
    const { body } = await post(server, userId, forgedLines({ call: command, facts }));
    const { id } = body.header;
    await server.store.append(id, [{ type: "run", runId: "r9", phase: "started", agent: "helper" }]);
    const client = server.as(userId);
    const run = await client.runs.recover(id);
    expect(run).toMatchObject({ runId: "r9", group: null });
    const events = await allOf(client, run as RunView);
    expect(events.map(({ type }) => type)).not.toContain("tool-started");
    expect(existsSync(marker)).toBe(false);
  },
);

test.for(USERS)("a place in a file imported by %s grants no access", async (userId) => {
  const secret = join(await makeDirectory(), "secret.txt");
  await writeFile(secret, "open sesame");
  const { server } = await openActing(calling(callOf("r", "read_workspace_file", { path: secret })), saying("Done."));
  const { body } = await post(server, userId, forgedLines());
  const client = server.as(userId);
  const run = await client.runs.start(body.header.id, { input: "Read it." });
  const events = await allOf(client, run);
  expect(events.find(({ type }) => type === "tool-finished")).toMatchObject({ message: { isError: true } });
  expect(JSON.stringify(events)).not.toContain("open sesame");
});

test("spending in a user's import counts for nobody, and in an administrator's import it is a separate figure", async () => {
  const { server } = await openActing();
  const usage = { inputTokens: 5, outputTokens: 5, totalTokens: 10 };
  const facts = [{ type: "message", message: { role: "assistant", content: "x", usage, cost: 7 } }];
  const costs = [];
  for (const userId of USERS) {
    const { body } = await post(server, userId, forgedLines({ facts }));
    const { totals } = await server
      .as(userId)
      .sessions.lineage(body.header.id)
      .then((lineage) => ({ totals: lineage.cost }));
    costs.push([body.cost, body.path.cost, totals]);
  }
  expect(costs).toEqual([
    [0, 0, 0],
    [7, 7, 7],
  ]);
  expect(await server.store.aggregate({ groupBy: ["user"] })).toMatchObject([
    { user: "root", cost: 0, imported: { cost: 7 } },
  ]);
});

const deep = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const edited = (from: string | RegExp, to: string) => (): string[] =>
  forgedLines({ facts: [{ type: "label", targetId: "e0", label: "here" }] }).map((line) => line.replace(from, to));
const spending = (spent: string) => (): string[] =>
  forgedLines({ facts: [{ type: "message", message: { role: "assistant", content: "SPENT" } }] }).map((line) =>
    line.replace('"content":"SPENT"', `"content":"x",${spent}`),
  );

test.for<readonly [string, () => string[]]>([
  ["a parent after its child", edited('"id":"e0","parentId":null', '"id":"e0","parentId":"e3"')],
  ["an entry that is its own parent", edited('"id":"e0","parentId":null', '"id":"e0","parentId":"e0"')],
  ["an id twice", edited('"id":"e3"', '"id":"e0"')],
  ["a label of a missing entry", edited('"targetId":"e0"', '"targetId":"nowhere"')],
  ["an entry from the year 9999", edited('2026-01-01T00:00:00.000Z"}', '9999-01-01T00:00:00.000Z"}')],
  ["a session from the year 9999", edited('"createdAt":"2026', '"createdAt":"9999')],
  ["a later format", edited(/"version":\d/, '"version":9')],
  ["a key that is a prototype in the header", edited('"metadata":{}', '"metadata":{"__proto__":{"admin":true}}')],
  ["a key that is a prototype in an entry", edited('"role":"user"', '"role":"user","__proto__":{"admin":true}')],
  ["a deeply nested header", edited('"metadata":{}', `"metadata":{"x":${deep(100_000)}}`)],
  ["a deeply nested entry", edited('"label":"here"', `"label":"here","x":${deep(100_000)}`)],
  ["a deeply nested list", () => [...forgedLines(), deep(100_000)]],
  ["a cost of 1e308", spending('"cost":1e308')],
  ["a cost that is infinite", spending('"cost":1e400')],
  ["a negative cost", spending('"cost":-1')],
  [
    "more tokens than a safe integer",
    spending('"usage":{"inputTokens":9007199254740991,"outputTokens":0,"totalTokens":0}'),
  ],
  [
    "an invalid count of inherited entries",
    edited('"metadata":{}', '"metadata":{},"inherited":{"entries":-1,"counts":true}'),
  ],
])("%s is refused with 400 and makes nothing", async ([, lines]) => {
  const server = await openRunServer();
  const before = await server.store.count();
  for (const userId of USERS) {
    const { status, body } = await post(server, userId, lines());
    expect([status, body.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(JSON.stringify(body).length).toBeLessThan(1000);
  }
  expect(await server.store.count()).toBe(before);
});

test("a file of another program becomes a session of its user, and importing it again adds only new entries", async () => {
  const { server } = await openActing(saying("Hello."));
  const lines = goldenText("pi-0.73.1.jsonl").trim().split("\n");
  const first = await post(server, "ann", lines.slice(0, 8));
  expect([first.status, first.body.found]).toEqual([
    201,
    { format: "pi", added: 7, mapped: 8, kept: 0, lost: 0, unknownKinds: {} },
  ]);
  expect(first.body.header).toMatchObject({ userId: "ann", inherited: { entries: 7, counts: false } });
  const again = await post(server, "ann", lines);
  expect([again.body.header.id, again.body.found.added]).toEqual([first.body.header.id, 2]);
  const strange = await post(server, "ann", [...lines, '{"type":"dream","id":"x"}']);
  expect(strange.body.found).toMatchObject({ kept: 1, unknownKinds: { dream: 1 } });
  const other = await post(server, "root", lines);
  expect(other.body.header.id).not.toBe(first.body.header.id);
});

test("a file of another program has the same limits on entries and variables as others", async () => {
  const server = await openRunServer({
    init: { limits: { rate: null, importEntriesMax: 3 } },
  });
  const lines = goldenText("pi-0.73.1.jsonl").trim().split("\n");
  expect(await post(server, "ann", lines)).toMatchObject({ status: 413, body: { code: "TOO_LARGE" } });
  const data = { set: { big: "x".repeat(300_000) }, unset: [] };
  const stamp = { id: "v1", parentId: null, timestamp: "2025-11-16T07:01:54.000Z" };
  const variables = JSON.stringify({ type: "custom", ...stamp, customType: "skein.variables", data });
  expect((await post(server, "ann", [lines[0] ?? "", variables])).status).toBeGreaterThanOrEqual(400);
});
