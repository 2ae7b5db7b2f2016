import { type Agent, type Model, SessionError, type SessionManager } from "../../../index.ts";
import type { GroupSession } from "../../../group/group-session.ts";
import { show } from "../../../session/errors.ts";
import type { CommandOption } from "../../command.ts";
import { loadModule } from "../../options/load-module.ts";

/** The option that names a module of agents. */
export const AGENTS_OPTION: CommandOption = {
  value: "FILE",
  what: "a module that exports agents (a list), and optionally models (a list) and groups (a function of the manager)",
};

/** The exports of a module of agents. */
export interface AgentsFile {
  readonly agents: readonly Agent[];
  readonly models: readonly Model[];
  readonly groups: (manager: SessionManager) => Readonly<Record<string, GroupSession>>;
}

/** Loads the agents that a module exports. @throws {SessionError} `INVALID_OPTION` if it exports no list of agents. */
export async function loadAgents(path: string): Promise<AgentsFile> {
  const loaded: Partial<AgentsFile> = await loadModule(path, "agents");
  const { agents, models = [], groups = () => ({}) } = loaded;
  if (Array.isArray(agents) && Array.isArray(models) && typeof groups === "function") return { agents, models, groups };
  throw new SessionError(
    "INVALID_OPTION",
    `${show(path)} must export a list of agents: export const agents = [createAgent({ name, prompt, model })].`,
  );
}
