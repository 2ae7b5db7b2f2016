import type { Content, Message } from "../src/session/message.ts";
import type { TreeNode } from "../src/session/log/entry-tree.ts";
import { SessionTree } from "../src/tree/session-tree.ts";
import { assistant, user } from "./sample-log.ts";

/** A tree with the branches a – b – c and a – d, and the leaf at d. */
export async function branchedTree(): Promise<SessionTree> {
  const tree = await SessionTree.inMemory("/project");
  await tree.appendMessage(user("a"), { id: "a" });
  await tree.appendMessage(assistant("b"), { id: "b" });
  await tree.appendMessage(user("c"), { id: "c" });
  await tree.branch("a");
  await tree.appendMessage(assistant("d"), { id: "d" });
  return tree;
}

/** The ids of a tree, nested like the tree. */
export function shapeOf(nodes: readonly TreeNode[]): unknown[] {
  return nodes.map(({ entry, children }) => [entry.id, ...shapeOf(children)]);
}

/** The contents of messages. */
export function contentsOf(messages: readonly Message[]): (Content | null)[] {
  return messages.map((message) => message.content);
}
