import { expect } from "vitest";
import { scripted } from "../../src/models/scripted.ts";
import { entriesOf, type LifecycleCase } from "./lifecycle-case.ts";
import { agentOf } from "./requests-sample.ts";

/** The authors of entries. */
export const byCases: readonly LifecycleCase[] = [
  {
    name: "records the author of every entry: the actor, an administrator by their own name, or nobody",
    async run({ store, manager }) {
      const desk = manager({ config: { defaultSystemPrompt: "Be kind.", autoCheckpointInterval: 0 } });
      const ann = { actor: "ann" };
      const boss = { actor: { userId: "boss", admin: true } };
      await desk.create({ userId: "ann", id: "s" }, boss);
      await desk.addTurn("s", { turnId: "t1", role: "user", content: "Hello." }, boss);
      await desk.addTurn("s", { turnId: "t2", role: "user", content: "Hello?" });
      const { id: checkpoint } = await desk.checkpoint("s", ann);
      await desk.suspend("s", boss);
      await desk.resume("s", ann);
      await (await desk.open("s", boss)).setName("Talk");
      await desk.restore(checkpoint, ann);
      const { sessionId: branch } = await desk.fork("s", "branch", { ...ann, at: "t1" });
      await desk.addTurn(branch, { turnId: "t3", role: "user", content: "There." }, boss);
      await desk.merge("s", branch, ann);
      const run = desk.run("s", agentOf("Hi."), "Go.", { ...ann, model: scripted(["Hi."]) });
      await run;
      await desk.close("s", boss);
      const named = (await entriesOf(store, "s")).map(({ type, by = null }) => [type, by]);
      expect(named).toEqual([
        ["variables", "boss"],
        ["message", "boss"],
        ["message", null],
        ["status", "boss"],
        ["status", "ann"],
        ["session_info", "boss"],
        ["leaf", "ann"],
        // A merged turn keeps its author.
        ["message", "boss"],
        ["message", "ann"],
        ["variables", null],
        ["setup", null],
        ["run", null],
        ["message", null],
        ["run", null],
        ["status", "boss"],
      ]);
      // Inherited entries keep their authors; the author of the moved leaf is the user who forked.
      const own = (await entriesOf(store, branch)).map(({ type, by = null }) => [type, by]);
      expect(own).toEqual([
        ["variables", "boss"],
        ["message", "boss"],
        ["message", "boss"],
      ]);
    },
  },
];
