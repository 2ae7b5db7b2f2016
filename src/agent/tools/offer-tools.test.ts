import { expect, test } from "vitest";
import { toolOf } from "../../../test/sample-run.ts";
import { toolsOf } from "./offer-tools.ts";

test("tools are sent in a fixed order: the agent's as given, then those of MCP servers by server and name", () => {
  const own = [toolOf("walk"), toolOf("act")];
  const served = [toolOf("b_two", undefined, { server: "b" }), toolOf("a_one", undefined, { server: "b" })];
  const others = [toolOf("z", undefined, { server: "a" })];
  const names = (tools: typeof own): readonly string[] => [...toolsOf({ tools, builtInTools: false }).keys()];
  const order = ["walk", "act", "z", "a_one", "b_two"];
  expect(names([...served, ...own, ...others])).toEqual(order);
  expect(names([...own, ...others, ...served.toReversed()])).toEqual(order);
});
