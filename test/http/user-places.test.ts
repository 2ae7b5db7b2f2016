import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { type Client, createClient } from "../../src/http/client/index.ts";
import { createServer } from "../../src/http/index.ts";
import type { RunPlace } from "../../src/workers/index.ts";
import { createAgent, createModel } from "../../src/index.ts";
import { workspaceTools } from "../../src/sandboxes/index.ts";
import { userDirectoryName } from "../../src/workers/user-places.ts";
import { localBackend } from "../../src/sandboxes/local/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { skipBecause } from "../skip.ts";
import { CountedBackend } from "../counted-sandbox.ts";
import { openRunServer } from "./runs-server.ts";
import { TOKENS, tokenOf } from "./server-support.ts";

/** A server with tools for ann, bob and root, whose store and workspace are real files. */
async function serveUsers(place: Partial<RunPlace> = {}) {
  const directory = await makeDirectory();
  const workspace = join(directory, "workspace");
  await mkdir(workspace);
  const path = join(directory, "skein.db");
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  const agent = createAgent({
    name: "clerk",
    prompt: "",
    model: createModel("offline"),
    tools: workspaceTools,
    builtInTools: false,
  });
  const server = await createServer({
    store,
    agents: [agent],
    place: { backend: "local", spec: { workingDir: workspace }, ...place },
    tokens: TOKENS,
    limits: { rate: null },
  });
  const url = await server.listen();
  onTestFinished(() => server.close({ drainMs: 0 }));
  return { workspace, path, as: (userId: string) => createClient({ url, token: tokenOf(userId) }) };
}

/** The results of a run's tools, from its events. */
async function ask(client: Client, input: string, sessionId?: string): Promise<string> {
  const id = sessionId ?? (await client.sessions.create()).header.id;
  const run = await client.runs.start(id, { input });
  const said: string[] = [];
  for await (const event of client.runs.events(id, run.runId)) {
    if (event.type === "tool-finished") said.push(JSON.stringify(event.message));
  }
  return said.join("\n");
}

async function needsBubblewrap(context: TestContext): Promise<void> {
  try {
    await (await localBackend.open({ isolation: "bubblewrap" })).close();
  } catch (error) {
    skipBecause(context, (error as Error).message);
  }
}

test("a user's tools can access neither another user's files nor other users' sessions", async (context) => {
  await needsBubblewrap(context);
  const { as, workspace, path } = await serveUsers();
  await ask(as("bob"), "write walrus-of-bob to secret.txt");
  const [bobs] = await readdir(workspace);
  expect(bobs).toBe(userDirectoryName("bob"));
  expect(await readFile(join(workspace, bobs as string, "secret.txt"), "utf8")).toBe("walrus-of-bob");

  const ann = as("ann");
  const tries = [
    `read ../${bobs}/secret.txt`,
    `read ${join(workspace, bobs as string, "secret.txt")}`,
    `run cat ${join(workspace, bobs as string, "secret.txt")} ../${bobs}/secret.txt`,
    `run cat ${path} ${path}-wal`,
    `run ls -a .. ${workspace}`,
    "run cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline",
  ];
  for (const each of tries) {
    const came = await ask(ann, each);
    expect(came, each).not.toContain("walrus");
    expect(came, each).not.toBe("");
  }
  expect(await ask(ann, "run pwd")).toContain(userDirectoryName("ann"));
  expect(await readdir(join(workspace, userDirectoryName("ann")))).toEqual([]);
});

test("a user's directory is private, and administrators work in the directory of the session's user", async (context) => {
  await needsBubblewrap(context);
  const { as, workspace } = await serveUsers();
  const ann = as("ann");
  const id = (await ann.sessions.create()).header.id;
  await ask(ann, "write one to a.txt", id);
  await ask(as("root"), "write two to b.txt", id);
  expect(await readdir(workspace)).toEqual([userDirectoryName("ann")]);
  expect((await readdir(join(workspace, userDirectoryName("ann")))).sort()).toEqual(["a.txt", "b.txt"]);
  expect((await stat(join(workspace, userDirectoryName("ann")))).mode & 0o777).toBe(0o700);
});

test("checkpoints store and restore the files of the session's user only", async (context) => {
  await needsBubblewrap(context);
  const { as, workspace } = await serveUsers();
  const [ann, bob] = [as("ann"), as("bob")];
  const id = (await ann.sessions.create()).header.id;
  const file = (userId: string) => join(workspace, userDirectoryName(userId), "plan.txt");
  await ask(ann, "write train to plan.txt", id);
  await ask(bob, "write walk to plan.txt");
  const checkpoint = await ann.checkpoints.create(id, { files: true });
  await ask(ann, "write boat to plan.txt", id);
  await ann.checkpoints.restore(checkpoint.id, { files: true });
  expect([await readFile(file("ann"), "utf8"), await readFile(file("bob"), "utf8")]).toEqual(["train", "walk"]);
});

test("a user id that looks like a path gets a directory like any other", () => {
  const names = ["..", "../bob", "/etc", "a/b", ".", "bob", "Bob", "bob "].map(userDirectoryName);
  expect(names.every((name) => /^user-[0-9a-f]{32}$/.test(name))).toBe(true);
  expect(new Set(names).size).toBe(names.length);
});

test("without working isolation, a server with tools for several users is refused, and a shared directory needs an explicit option", async () => {
  const { PATH } = process.env;
  onTestFinished(() => {
    process.env["PATH"] = PATH;
  });
  process.env["PATH"] = await makeDirectory();
  await expect(serveUsers()).rejects.toMatchObject({ code: "ISOLATION_MISSING" });
  process.env["PATH"] = PATH;
  const { as, workspace } = await serveUsers({ perUser: false });
  await writeFile(join(workspace, "shared.txt"), "for all");
  expect(await ask(as("ann"), "read shared.txt")).toContain("for all");
});

test("no route that creates a session lets a user choose the place of its tools", async () => {
  const backend = new CountedBackend();
  const { url, as } = await openRunServer({ place: { backend: backend.name, spec: "/work" } });
  const sandbox = { backend: "local", spec: { workingDir: "/" }, handleId: null };
  const { id } = (await as("ann").sessions.create()).header;
  for (const path of ["/api/sessions", `/api/sessions/${id}/forks`]) {
    const headers = { authorization: `Bearer ${tokenOf("ann")}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify({ sandbox }) });
    expect(answer.status, path).toBe(400);
  }
});
