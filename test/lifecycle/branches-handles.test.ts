import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BranchManager } from "../../src/lifecycle/merge/branch-manager.ts";
import { readState } from "../../src/lifecycle/read-state.ts";
import { SummaryMerge } from "../../src/lifecycle/merge/summary-merge.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import { backends } from "../store-backends.ts";
import { entriesOf, say, sessionOf, textsOf } from "./branches-sample.ts";

const shared = backends.filter(({ skips }) => skips.length === 0);

test.for(shared.map((backend) => [backend.name, backend] as const))(
  "two handles of the %s store that merge the same branches concurrently append each turn and each summary once",
  async ([, backend]) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-handles-"));
    const stores = [await backend.open(directory), await backend.open(directory)] as const;
    try {
      const [store] = stores;
      const managers = stores.map((each) => new BranchManager(each));
      await sessionOf(store, "s", "one");
      const forks = await Promise.all(["a", "b", "c"].map((name) => new BranchManager(store).fork("s", name)));
      for (const { sessionId, branchName } of forks) await say(store, sessionId, `${branchName}1`, `${branchName}2`);
      const told = await new BranchManager(store).fork("s", "told");
      await say(store, told.sessionId, "to be summed up");
      let asked = 0;
      const strategy = new SummaryMerge({ summarize: async () => `summary ${++asked}` });
      await Promise.all(
        managers.flatMap((branches) => [
          ...forks.map(({ sessionId }) => branches.merge("s", sessionId)),
          branches.merge("s", told.sessionId, { strategy }),
        ]),
      );
      const turns = textsOf(await readState(store, (await store.head("s")) as SessionHead));
      expect(turns.toSorted()).toEqual(["a1", "a2", "b1", "b2", "c1", "c2", "one"]);
      for (const { branchName } of forks) {
        expect(turns.indexOf(`${branchName}2`)).toBe(turns.indexOf(`${branchName}1`) + 1);
      }
      expect((await entriesOf(store, "s")).filter(({ type }) => type === "branch_summary")).toHaveLength(1);
    } finally {
      await Promise.all(stores.map((each) => each.close()));
      await rm(directory, { recursive: true, force: true });
    }
  },
);
