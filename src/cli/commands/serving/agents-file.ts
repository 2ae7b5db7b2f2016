import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Agent, type Model, SessionError, type SessionManager } from "../../../index.ts";
import type { GroupSession } from "../../../group/group-session.ts";
import { show } from "../../../session/errors.ts";
import type { CommandOption } from "../../command.ts";

/** The option that names a file of agents. */
export const AGENTS_OPTION: CommandOption = {
  value: "FILE",
  what: "a module that exports agents, a list of them, and if it likes models, a list, and groups, a function of the manager",
};

/** What a file of agents offers. */
export interface AgentsFile {
  readonly agents: readonly Agent[];
  readonly models: readonly Model[];
  readonly groups: (manager: SessionManager) => Readonly<Record<string, GroupSession>>;
}

/** The agents that a module exports. @throws {SessionError} `INVALID_OPTION` for one that exports none. */
export async function loadAgents(path: string): Promise<AgentsFile> {
  const missing = `There is no file ${show(path)}; name a module that exports agents.`;
  if (!existsSync(path)) throw new SessionError("INVALID_OPTION", missing);
  const file = pathToFileURL(resolve(path)).href;
  let loaded: Partial<AgentsFile>;
  try {
    loaded = (await import(file)) as Partial<AgentsFile>;
  } catch (cause) {
    const { message } = cause as Error;
    throw new SessionError("INVALID_OPTION", `The agents of ${show(path)} cannot be loaded: ${message}`, { cause });
  }
  const { agents, models = [], groups = () => ({}) } = loaded;
  if (Array.isArray(agents) && Array.isArray(models) && typeof groups === "function") return { agents, models, groups };
  throw new SessionError(
    "INVALID_OPTION",
    `${show(path)} exports no list of agents; export const agents = [createAgent({ name, prompt, model })].`,
  );
}
