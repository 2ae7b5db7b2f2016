import { join } from "node:path";
import { expect, test } from "vitest";
import { runHere } from "../cli/run-skein.ts";
import { makeDirectory } from "./jsonl-support.ts";
import { start } from "./program-support.ts";

test("a call that needs approval does not end the process silently, and its question is listed if no one answers", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const program = start("run-waiting.mjs", [path]);
  await program.ended;
  expect(program.lines()).toEqual([
    "not kept: APPROVAL_NEEDED",
    "asked in place: Done.",
    "park false: Done.",
    "kept: parked pay",
  ]);
  const { stdout } = await runHere(["approvals", "--store", `sqlite:${path}`, "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ questions: [{ userId: "ann", name: "pay" }], more: false });
});
