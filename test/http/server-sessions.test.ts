import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { type Contract, readContract } from "./server-contract.ts";
import { startTestServer, type TestServer } from "./server-support.ts";

let server: TestServer;
let api: Contract;
beforeAll(async () => {
  server = await startTestServer();
  api = await readContract(server);
});
afterAll(async () => server[Symbol.asyncDispose]());

/** Creates a session with these user turns; returns its id. */
async function sessionWith(...turns: readonly string[]): Promise<string> {
  const { body } = await api.call("POST", "/api/sessions", {});
  const { id } = body.header;
  for (const content of turns) await api.call("POST", `/api/sessions/${id}/turns`, { role: "user", content });
  return id;
}

describe("a session", () => {
  test("is created with a name, a directory and a prompt, and the answer has its location", async () => {
    const made = await api.call("POST", "/api/sessions", {
      name: "Refund",
      cwd: "/shop",
      metadata: { order: 4711 },
      systemPrompt: "Be kind.",
    });
    expect(made.status).toBe(201);
    const { header, name, path, running } = made.body;
    expect({ name, running, cwd: header.cwd, metadata: header.metadata }).toEqual({
      name: "Refund",
      running: null,
      cwd: "/shop",
      metadata: { order: 4711 },
    });
    expect(path.settings.systemPrompt).toBe("Be kind.");
    expect(made.headers.get("location")).toBe(`/api/sessions/${header.id}`);
    expect((await api.call("GET", `/api/sessions/${header.id}`)).body).toEqual(made.body);
    const count = async () => (await api.call("GET", "/api/sessions?limit=1000")).body.items.length;
    const before = await count();
    expect((await api.call("POST", "/api/sessions", { name: "x".repeat(1001) })).body.problems[0].path).toBe(
      "body.name",
    );
    expect(await count()).toBe(before);
  });

  test("is listed by user, directory and status, page by page", async () => {
    const made = [];
    for (let i = 0; i < 3; i++) {
      made.push((await api.call("POST", "/api/sessions", { userId: "lister", cwd: "/list" })).body.header.id);
    }
    await api.call("POST", `/api/sessions/${made[1]}/suspend`);
    const first = await api.call("GET", "/api/sessions?userId=lister&cwd=%2Flist&limit=2");
    expect(first.body.items).toHaveLength(2);
    const second = await api.call(
      "GET",
      `/api/sessions?userId=lister&cwd=%2Flist&limit=2&cursor=${encodeURIComponent(first.body.next)}`,
    );
    const listed = [...first.body.items, ...second.body.items].map(({ header }) => header.id);
    expect([...listed].sort()).toEqual([...made].sort());
    expect(second.body.next).toBeNull();
    const suspended = await api.call("GET", "/api/sessions?userId=lister&status=suspended&status=closed");
    expect(suspended.body.items.map(({ header }: { header: { id: string } }) => header.id)).toEqual([made[1]]);
  });

  test("accepts a name and variables, atomically", async () => {
    const id = await sessionWith("Hello");
    const changed = await api.call("PATCH", `/api/sessions/${id}`, {
      name: "Named",
      variables: { set: { mood: "fine" } },
    });
    expect(changed.body.name).toBe("Named");
    expect(changed.body.path.settings.variables).toEqual({ mood: "fine" });
    const refused = await api.call("PATCH", `/api/sessions/${id}`, { name: "Other", variables: { unset: "mood" } });
    expect(refused.status).toBe(400);
    expect(refused.body.problems).toEqual([{ path: "body.variables.unset", message: expect.any(String) }]);
    expect((await api.call("GET", `/api/sessions/${id}`)).body).toEqual(changed.body);
    const removed = await api.call("PATCH", `/api/sessions/${id}`, { variables: { unset: ["mood"] } });
    expect(removed.body.path.settings.variables).toEqual({});
  });

  test("goes through all statuses, and an invalid transition is a conflict", async () => {
    const id = await sessionWith("Hello");
    const step = (name: string, body: unknown = {}) => api.call("POST", `/api/sessions/${id}/${name}`, body);
    expect((await step("suspend")).body.status).toBe("suspended");
    expect((await step("turns", { role: "user", content: "?" })).body).toMatchObject({
      status: 409,
      code: "SESSION_SUSPENDED",
    });
    expect((await step("entries", { entries: [{ type: "custom", customType: "x" }] })).body.code).toBe(
      "SESSION_SUSPENDED",
    );
    expect((await step("suspend")).body).toMatchObject({ status: 409, code: "TRANSITION" });
    expect((await step("resume")).body.status).toBe("active");
    expect((await step("close", { reason: "done" })).body).toMatchObject({ status: "closed", statusReason: "done" });
    expect((await step("turns", { role: "user", content: "?" })).body.code).toBe("SESSION_CLOSED");
    expect((await step("resume")).body.code).toBe("SESSION_CLOSED");
    expect((await api.call("GET", `/api/sessions/${id}/entries`)).body.items).toHaveLength(4);
  });

  test("is deleted, listed among the deleted ones, and undeleted", async () => {
    const id = await sessionWith("Remember me");
    expect((await api.call("DELETE", `/api/sessions/${id}`)).status).toBe(204);
    expect((await api.call("GET", `/api/sessions/${id}`)).body.code).toBe("SESSION_NOT_FOUND");
    expect((await api.call("DELETE", `/api/sessions/${id}`)).status).toBe(404);
    const deleted = await api.call("GET", "/api/sessions?deleted=true");
    expect(deleted.body.items.map(({ header }: { header: { id: string } }) => header.id)).toContain(id);
    expect((await api.call("POST", `/api/sessions/${id}/undelete`)).body.firstMessage).toBe("Remember me");
    expect((await api.call("POST", `/api/sessions/${id}/undelete`)).status).toBe(404);
  });

  test("is not undeleted while its user has the maximum of open sessions", async () => {
    const manager = new SessionManager({ store: openMemoryStore(), config: { maxSessionsPerUser: 1 } });
    await using full = await startTestServer({ manager });
    const make = async (): Promise<string> => (await full.call("POST", "/api/sessions", {})).body.header.id;
    const first = await make();
    await full.call("DELETE", `/api/sessions/${first}`);
    const second = await make();
    const refused = await full.call("POST", `/api/sessions/${first}/undelete`);
    expect([refused.status, refused.body.code]).toEqual([409, "CAPACITY"]);
    expect((await full.call("GET", `/api/sessions/${first}`)).status).toBe(404);
    await full.call("POST", `/api/sessions/${second}/close`);
    expect((await full.call("POST", `/api/sessions/${first}/undelete`)).status).toBe(200);
  });

  test("returns its state with or without turns", async () => {
    const id = await sessionWith("One", "Two");
    const whole = await api.call("GET", `/api/sessions/${id}/state`);
    expect(whole.body.turns.map(({ content }: { content: string }) => content)).toEqual(["One", "Two"]);
    const bare = await api.call("GET", `/api/sessions/${id}/state?turns=false`);
    expect(bare.body).toEqual({ ...whole.body, turns: [] });
  });
});

describe("entries", () => {
  test("are read page by page in both directions, without a gap or a repetition", async () => {
    const id = await sessionWith("0", "1", "2", "3", "4");
    const pages = async (query: string, cursor: string): Promise<number[]> => {
      const found: number[] = [];
      for (let next: string | null = ""; next !== null; ) {
        const { body } = await api.call(
          "GET",
          `/api/sessions/${id}/entries?limit=2${query}${next && `&${cursor}=${next}`}`,
        );
        found.push(...body.items.map(({ seq }: { seq: number }) => seq));
        expect(body.items.length).toBeLessThanOrEqual(2);
        next = body.next;
      }
      return found;
    };
    expect(await pages("", "after")).toEqual([0, 1, 2, 3, 4]);
    expect(await pages("&reverse=true", "before")).toEqual([4, 3, 2, 1, 0]);
    expect(await pages("&before=4", "after")).toEqual([0, 1, 2, 3]);
  });

  test("are appended atomically, idempotently, and only at the expected version", async () => {
    const id = await sessionWith();
    const path = `/api/sessions/${id}/entries`;
    const entries = [
      { type: "message", id: "q", message: { role: "user", content: "Hi" } },
      { type: "custom", id: "c", customType: "mark", data: { deep: [1] } },
    ];
    const first = await api.call("POST", path, { entries, expectedVersion: 0 });
    expect(first.status).toBe(201);
    expect(first.body.entries.map(({ seq }: { seq: number }) => seq)).toEqual([0, 1]);
    expect((await api.call("POST", path, { entries })).body).toEqual(first.body);
    const late = await api.call("POST", path, { entries: [{ type: "custom", customType: "x" }], expectedVersion: 0 });
    expect(late.body).toMatchObject({ status: 409, code: "CONFLICT" });
    const half = await api.call("POST", path, { entries: [{ type: "custom", customType: "x" }, { type: "message" }] });
    expect(half.body).toMatchObject({ status: 400, code: "INVALID_ENTRY" });
    expect((await api.call("GET", path)).body.items).toHaveLength(2);
  });

  test("have the caller as their author, even if they name another user", async () => {
    const id = await sessionWith("Hello");
    const entry = { type: "custom", customType: "x", by: "someone", inherited: true };
    const { body } = await api.call("POST", `/api/sessions/${id}/entries`, { entries: [entry] });
    const { items } = (await api.call("GET", `/api/sessions/${id}/entries`)).body;
    expect(body.entries).toEqual(items.slice(1));
    expect(items[0].by).toBeTypeOf("string");
    expect(items[1].by).toBe(items[0].by);
    expect(items[1]).not.toHaveProperty("inherited");
  });

  test("that only runs and the manager write are refused", async () => {
    const id = await sessionWith("Hello");
    for (const entry of [
      { type: "status", status: "expired" },
      { type: "lost", reason: "damage" },
      { type: "unheard-of", node: true },
      {
        type: "run",
        runId: "r",
        phase: "started",
        sandbox: { backend: "local", spec: { workingDir: "/" }, handleId: null },
      },
      { type: "approval", runId: "r", callId: "c", decision: { approve: true } },
    ]) {
      const refused = await api.call("POST", `/api/sessions/${id}/entries`, { entries: [entry] });
      expect(refused.body).toMatchObject({ status: 400, code: "INVALID_ENTRY" });
    }
    expect((await api.call("GET", `/api/sessions/${id}`)).body).toMatchObject({ status: "active", version: 1 });
  });

  test("are found by ids of any characters", async () => {
    const id = await sessionWith();
    for (const [entryId, segment] of [
      ["user:bob", "user%3Abob"],
      ["a/b", "a%2Fb"],
      ["__proto__", "__proto__"],
      ["..", "%3D.."],
      ["=x", "%3D%3Dx"],
      ["100%25", "100%2525"],
      ["é 😀", "%C3%A9%20%F0%9F%98%80"],
    ] as const) {
      await api.call("POST", `/api/sessions/${id}/turns`, { turnId: entryId, role: "user", content: entryId });
      const found = await api.call("GET", `/api/sessions/${id}/entries/${segment}`);
      expect(found.body).toMatchObject({ id: entryId, message: { content: entryId } });
    }
    expect((await api.call("GET", `/api/sessions/${id}/entries/nobody`)).body).toMatchObject({
      status: 404,
      code: "UNKNOWN_ENTRY",
    });
  });

  test("with results of tools can be added as turns", async () => {
    const id = await sessionWith("What is the time?");
    const path = `/api/sessions/${id}/turns`;
    const toolCalls = [{ id: "c1", name: "clock", arguments: "{}" }];
    await api.call("POST", path, {
      role: "assistant",
      content: null,
      toolCalls,
      model: "m",
      provider: "p",
      tokensUsed: 7,
    });
    const answered = await api.call("POST", path, {
      role: "tool",
      toolCallId: "c1",
      toolName: "clock",
      content: "noon",
    });
    expect(answered.status).toBe(201);
    expect(answered.body.path).toMatchObject({ turnCount: 3, usage: { totalTokens: 7 } });
  });
});
