import type { Content, Message } from "../src/session/message.ts";
import type { TreeNode } from "../src/session/log/tree.ts";
import { SessionTree } from "../src/tree/session-tree.ts";
import { assistant, user } from "./sample-log.ts";

/** a – b – c, and d beside b; the leaf at d. */
export async function branchedTree(): Promise<SessionTree> {
  const tree = await SessionTree.inMemory("/project");
  await tree.appendMessage(user("a"), { id: "a" });
  await tree.appendMessage(assistant("b"), { id: "b" });
  await tree.appendMessage(user("c"), { id: "c" });
  await tree.branch("a");
  await tree.appendMessage(assistant("d"), { id: "d" });
  return tree;
}

/** The ids of a tree, each with those below it. */
export function shapeOf(nodes: readonly TreeNode[]): unknown[] {
  return nodes.map(({ entry, children }) => [entry.id, ...shapeOf(children)]);
}

/** What messages say. */
export function contentsOf(messages: readonly Message[]): (Content | null)[] {
  return messages.map((message) => message.content);
}
