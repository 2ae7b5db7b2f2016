import { createAgent, createModel, type SessionManager } from "../../../index.ts";
import { GroupSession } from "../../../group/group-session.ts";
import { RoundRobinTurnManager } from "../../../group/turns/round-robin-turn-manager.ts";

/** A sample group: a writer, an editor, and a critic whose messages only the editor sees. */
export function sampleGroup(manager: SessionManager): GroupSession {
  const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(1) });
  const agentOf = (name: string, prompt: string) =>
    createAgent({ name, prompt, model: createModel("offline"), builtInTools: false });
  group.addAgent(agentOf("writer", "You write one sentence."), "author");
  group.addAgent(agentOf("critic", "You tell the editor what is wrong with it."), "critic", { visibleTo: ["editor"] });
  return group.addAgent(agentOf("editor", "You decide what is printed."), "editor");
}
