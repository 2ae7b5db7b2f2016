import { describe, expect, test } from "vitest";
import { SessionManager } from "../../src/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { viewAsInherited } from "../../src/stores/inherited-view.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { backends } from "../store-backends.ts";

const END_OF_TIME = "9999-12-31T23:59:59.999Z";
const secret = { type: "variables", set: { key: "hunter2" }, unset: [], systemPrompt: "Secret instructions." } as const;

describe.for(backends)("listings of the $name store", (backend) => {
  test("have no variables, and the settings of a listed session can still be read", async () => {
    await using store = await backend.open(await makeDirectory());
    const manager = new SessionManager({ store });
    const header = createHeader({ userId: "ann", cwd: "/work" });
    const say = { type: "message", message: { role: "user", content: "Lisbon" } } as const;
    await store.create(header, { entries: [{ ...secret, set: { first: "swordfish" } }] });
    await store.append(header.id, [say, secret]);
    await manager.request(header.id, { input: "Oslo" });
    const fork = await manager.fork(header.id, "b");
    await store.delete((await manager.fork(header.id, "c")).sessionId);

    const listings = [
      await store.list(),
      await store.list({ deleted: true }),
      await store.list({ parentId: header.id }),
      await store.list({ runs: "requested" }),
      await store.search("Lisbon"),
      await store.listExpired(END_OF_TIME, 100),
      await manager.list(),
      await manager.list({}, { actor: "ann" }),
      await manager.runs({ state: "requested" }),
      await viewAsInherited(store).list(),
    ];
    for (const listing of listings) {
      expect(JSON.stringify(listing)).toContain(header.id);
      expect(JSON.stringify(listing)).not.toMatch(/hunter2|swordfish|Secret instructions/);
    }
    const { items } = await manager.list({ userId: "ann" });
    expect(items.map(({ header: { id } }) => id).sort()).toEqual([header.id, fork.sessionId].sort());
    for (const head of items) {
      expect(head.path.settings).not.toHaveProperty("change");
      expect(await store.settings(head.header.id, head.path)).toMatchObject({
        variables: { first: "swordfish", key: "hunter2" },
        systemPrompt: "Secret instructions.",
      });
    }
  });
});
