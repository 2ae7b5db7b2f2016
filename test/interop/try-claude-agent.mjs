import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "skein";
import { SkeinSessionStore } from "skein/claude-agent";

/**
 * The members of the Claude Agent SDK that are used here.
 * @typedef {object} Sdk
 * @property {(init: { prompt: string, options: object }) => AsyncIterable<{ type: string, session_id?: string, result?: string, error?: string }>} query
 * @property {new () => SkeinSessionStore} InMemorySessionStore
 */

/** @typedef {{ url: string, asked: { path: string, body: string }[], close(): Promise<void> }} StandIn */

/**
 * Has a conversation with a tool through the real SDK, and resumes it from the store alone, as in another process.
 * @param {Sdk} sdk
 * @param {() => Promise<StandIn>} openStandIn
 */
export async function tryClaudeAgent(sdk, openStandIn) {
  const folder = await mkdtemp(join(tmpdir(), "skein-claude-agent-"));
  const standIn = await openStandIn();
  const store = await openStore(`sqlite:${join(folder, "skein.db")}`);
  const ours = new SkeinSessionStore(store);
  const theirs = new sdk.InMemorySessionStore();
  /** Forwards the SDK's calls to both stores. */
  const both = {
    /** @type {SkeinSessionStore["append"]} */
    async append(key, lines) {
      await theirs.append(key, structuredClone(lines));
      await ours.append(key, lines);
    },
    /** @type {SkeinSessionStore["load"]} */
    async load(key) {
      const loaded = await ours.load(key);
      assert.deepEqual(loaded, await theirs.load(key));
      return loaded;
    },
    /** @type {SkeinSessionStore["listSubkeys"]} */
    listSubkeys: (key) => ours.listSubkeys(key),
  };
  try {
    const cwd = join(folder, "project");
    await mkdir(cwd);
    await writeFile(join(cwd, "notes.txt"), "the blue kettle is in the shed\n");
    /**
     * @param {string} prompt
     * @param {string} home a separate directory, so that only the store has the first part
     * @param {object} more
     */
    const say = async (prompt, home, more = {}) => {
      const env = {
        ...process.env,
        ANTHROPIC_BASE_URL: standIn.url,
        ANTHROPIC_API_KEY: "none",
        CLAUDE_CONFIG_DIR: join(folder, home),
        HOME: join(folder, home),
        DISABLE_AUTOUPDATER: "1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        IS_SANDBOX: "1",
      };
      const options = {
        cwd,
        env,
        sessionStore: both,
        permissionMode: "bypassPermissions",
        allowDangerouslySkipPermissions: true,
        ...more,
      };
      let last;
      for await (const message of sdk.query({ prompt, options })) if (message.type === "result") last = message;
      assert.ok(last?.session_id, "the SDK gave no result");
      return { sessionId: last.session_id, result: last.result };
    };
    const first = await say("Look into notes.txt for the kettle.", "first-home");
    assert.match(first.result ?? "", /blue kettle/);
    const before = standIn.asked.length;
    const second = await say("And what did I ask before?", "second-home", { resume: first.sessionId });
    assert.equal(second.sessionId, first.sessionId);
    const request = standIn.asked.slice(before).find(({ body }) => body.includes("And what did I ask before?"));
    const body = request?.body ?? "";
    assert.ok(body.includes("Look into notes.txt for the kettle."), "the resumed request lacks the first part");
    assert.ok(body.includes("the blue kettle is in the shed"), "the resumed request lacks the tool's result");

    const [hit] = await store.search('"look into notes.txt"');
    assert.ok(hit !== undefined, "search does not find the first turn");
    const { projectKey } = /** @type {{ projectKey: string }} */ (hit.head.header.metadata["claudeAgent"]);
    const key = { projectKey, sessionId: first.sessionId };
    assert.deepEqual(await ours.load(key), await theirs.load(key));
    const listed = await ours.listSessions(projectKey);
    assert.deepEqual(
      listed.map(({ sessionId }) => sessionId),
      (await theirs.listSessions(projectKey)).map(({ sessionId }) => sessionId),
    );
    await ours.delete(key);
    assert.equal(await ours.load(key), null);
    return { lines: (await theirs.load(key))?.length ?? 0, turns: hit.head.messageCount, usage: hit.head.usage };
  } finally {
    await store.close();
    await standIn.close();
    await rm(folder, { recursive: true, force: true });
  }
}
