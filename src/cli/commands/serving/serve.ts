import { once } from "node:events";
import { access } from "node:fs/promises";
import { createToken } from "../../../http/api-token.ts";
import type { ServerInit } from "../../../http/create-server.ts";
import { announceServer, type LocalServer } from "../../../http/local-servers.ts";
import { isLoopback } from "../../../http/loopback.ts";
import { openTokenFile, type TokenFile } from "../../../http/token-file.ts";
import {
  type Agent,
  createAgent,
  createModel,
  type Model,
  SessionError,
  type SessionManager,
  type SessionStore,
  type Tool,
} from "../../../index.ts";
import type { SessionConfig } from "../../../lifecycle/session-config.ts";
import { workspaceTools } from "../../../tools/workspace-tools.ts";
import { show } from "../../../session/errors.ts";
import { hideFromSandboxes } from "../../../session/sandbox/sandbox-hidden-paths.ts";
import { bullmqQueue } from "../../../workers/bullmq-queue.ts";
import { AGENTS_OPTION, type AgentsFile, loadAgents } from "./agents-file.ts";
import { type Command, type CommandContext, textOption, textsOption } from "../../command.ts";
import { ageOption, countOption } from "../../options/option-values.ts";
import { FOLLOW_OPTION, programImports } from "./follow-programs.ts";
import { type OfferedModels, offeredModels } from "../../options/offered-models.ts";
import { LOCAL_USER } from "../../../lifecycle/access.ts";
import { openManager, openServiceManager } from "../../open-manager.ts";
import { STUDIO } from "../../package-files.ts";
import { openProgramTools, type ProgramTools, TOOL_OPTIONS } from "../../options/program-tools.ts";
import { sampleGroup } from "./sample-group.ts";
import { makeSampleSessions } from "./sample-sessions.ts";
import { addressWithToken } from "./address-with-token.ts";
import { ASK_OPTIONS, askOption } from "../../options/ask-option.ts";
import { workspaceAt } from "../../options/workspace-option.ts";

/** A local server has one user, so it needs none of the limits that protect users from each other. */
const LOCAL_LIMITS = { rate: null, storedSessionsPerUser: null, storedBytesPerUser: null } as const;
const OPEN_TO_ALL =
  "--open-to-this-machine: every account and every program on this machine can use this server without a token, with administrator rights, and can run its tools with your rights.";

const OFFLINE_ANSWERS =
  "the agent assistant answers with the offline model, which is not a language model and only gives fixed answers, and only in sessions that no other model has answered. Configure an agent with --agent NAME=PROVIDER/MODEL.";

/** Serves sessions over HTTP. */
export const serve: Command = {
  name: "serve",
  summary: "Serve sessions and the studio over HTTP, until stopped with Ctrl-C or SIGTERM.",
  details:
    'The address serves the studio to a browser, and the API to programs. Besides the agents\' own models, those of providers whose key is in the environment can be chosen. The tools of --tools and --mcp, and those of skein.config.mjs in the current directory, are for all agents and users; their code runs in the server, with the rights of its account. Without --token-file, the server makes a token for the user who starts it: the printed address contains it, and skein open prints it again. The studio then offers to import the sessions of other programs on this machine; nothing of them is read before. Sessions then do not expire and have no limits. With --token-file, users see only their own sessions, and their tools are isolated, in a separate directory for each user below the workspace; changes of the file take effect within a second. Each user may have SKEIN_MAX_SESSIONS_PER_USER open sessions (100) of SKEIN_MAX_TURNS_PER_SESSION turns (1000); a request beyond that gets CAPACITY until a session is closed or deleted. Sessions expire only if SKEIN_SESSION_TTL is set. SKEIN_BUDGETS, a JSON list such as [{"per":"user","window":"1d","cost":2}], limits what each user may spend; set it for workers, too. SIGTERM and Ctrl-C let runs finish first; a second one stops right away.',
  arguments: [],
  options: {
    host: {
      value: "HOST",
      default: "127.0.0.1",
      what: "the address to listen on; any other than this machine needs --token-file",
    },
    port: { value: "N", default: "4117", what: "the port; 0 for a free one" },
    "token-file": { value: "FILE", what: "the tokens of the users, made with skein token" },
    "park-after": {
      value: "SECONDS",
      default: "30",
      what: "how long a run waits for an approval before it parks and releases its session",
    },
    webhook: { value: "URL", what: "the URL that is posted to when a run parks" },
    "open-to-this-machine": {
      what: "no token: every account and program on this machine has administrator rights, and runs tools with your rights",
    },
    queue: {
      value: "URL",
      what: "the queue that skein worker listens to, as redis://host:6379; the workers then execute all runs, not the server",
    },
    agents: AGENTS_OPTION,
    agent: {
      value: "NAME=MODEL",
      repeated: true,
      what: "the name of an agent and its model as provider/model (default: assistant, with a model whose key is set, else the offline model)",
    },
    workspace: {
      value: "DIRECTORY",
      what: "the directory that the workspace tools work in; without it, agents have no workspace tools",
    },
    ...TOOL_OPTIONS,
    ...ASK_OPTIONS,
    prompt: { value: "TEXT", default: "You are a helpful assistant.", what: "the instructions of the agents" },
    drain: { value: "AGE", default: "10s", what: "how long runs may continue after the server was stopped" },
    follow: FOLLOW_OPTION,
    samples: { what: "fill an empty store with sample sessions, and offer a sample group of agents" },
    log: { what: "log every request on the standard error, as a line of JSON; server errors are always logged" },
  },
  examples: [
    { line: "skein serve", what: "for yourself, with the offline model, which needs no key" },
    {
      line: "skein serve --follow all",
      what: "with your sessions of Claude Code, Codex, pi and OpenRath, kept up to date",
    },
    { line: "skein serve --workspace . --samples", what: "with tools for the files here, and sample sessions" },
    {
      line: "skein serve --host 0.0.0.0 --token-file ./tokens --agent clerk=openai/gpt-5-mini",
      what: "for all users with a token",
    },
  ],
  json: { url: "the address", token: "the token that it made, if any" },
  store: "made",
  runsTools: true,
  async run(context) {
    const { values, signal } = context;
    using access = await accessOf(context);
    await using opened = await toolsFor(context);
    const known = await offeredModels();
    const offered = await offeredBy(context, opened?.tools ?? [], known);
    const init = {
      ...(await initOf(context, access)),
      agents: offered.agents,
      models: [...offered.models, ...known.models],
    };
    const drainMs = (ageOption(values, "drain") ?? 10) * 1000;
    await using store = await context.openStore();
    await using manager = await managerOf(store, access);
    const samples = values["samples"] === true;
    if (samples) await makeSampleSessions(manager);
    const groups = samples ? { newsroom: sampleGroup(manager) } : {};
    const { queue } = init;
    await using _queue = queue === undefined ? null : { [Symbol.asyncDispose]: () => queue.close() };
    const { imports, begin } = programImports(context, store);
    const { token } = access;
    const { startServer } = await import("../../../http/server/start-server.ts");
    await using server = await startServer(
      { ...init, manager, groups: { ...groups, ...offered.groups(manager) } },
      token === null ? null : imports,
    );
    const url = await server.listen();
    manager.start();
    begin();
    if (values["open-to-this-machine"] === true) context.fail(OPEN_TO_ALL);
    await using _announced = token === null ? null : await announce(context, { url, token });
    if (context.json) context.printJson(token === null ? { url } : { url, token });
    else
      context.print(
        `Skein listens on ${token === null ? url : addressWithToken({ url, token })}; press Ctrl-C to stop.`,
      );
    if (access.file !== null && !context.json) context.print(limitsLine(manager.config));
    if (!context.json && queue === undefined && offered.chosen !== null)
      context.print(chosenLine(offered.chosen, known));
    if (!signal.aborted) await once(signal, "abort");
    await server.close({ drainMs });
    await imports.ended();
    return 0;
  },
};

/** Who may use the server: the users of a token file, the user who starts it, or everyone on this machine. */
interface ServerAccess extends Disposable {
  readonly file: TokenFile | null;
  /** The token that was made for the user who starts the server. */
  readonly token: string | null;
}

async function accessOf({ values, fail }: CommandContext): Promise<ServerAccess> {
  const [path, host = ""] = [textOption(values, "token-file"), textOption(values, "host")];
  const open = values["open-to-this-machine"] === true;
  if (path === undefined) {
    if (!isLoopback(host)) {
      const message = `--host is ${show(host)}; to listen beyond this machine, give --token-file.`;
      throw new SessionError("INVALID_OPTION", message);
    }
    return { file: null, token: open ? null : createToken(), [Symbol.dispose]: () => {} };
  }
  if (open) {
    throw new SessionError("INVALID_OPTION", "Give either --open-to-this-machine or --token-file, not both.");
  }
  hideFromSandboxes(path);
  const file = await openTokenFile(path, { onProblem: ({ message }) => fail(message) });
  return { file, token: null, [Symbol.dispose]: () => file[Symbol.dispose]() };
}

/** Records the server for skein open. A failure is printed only, as the server works without it. */
async function announce({ fail }: CommandContext, server: LocalServer): Promise<AsyncDisposable | null> {
  try {
    return await announceServer(server);
  } catch (error) {
    const { message } = error as Error;
    fail(`skein open will not find this server, so copy the address: ${message}`);
    return null;
  }
}

async function initOf({ values, fail }: CommandContext, { file, token }: ServerAccess): Promise<ServerInit> {
  const [host, port] = [textOption(values, "host"), countOption(values, "port", 0)];
  const given = textOption(values, "workspace");
  const workspace = given === undefined ? null : await workspaceAt(given, values);
  const studio = await studioDirectory();
  return {
    ...runningOf({ values }),
    logger: (line) => {
      if (line.level === "error" || values["log"] === true) fail(JSON.stringify(line));
    },
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(file !== null && { tokens: file }),
    ...(token !== null && { tokens: [{ token, userId: LOCAL_USER, admin: true }], limits: LOCAL_LIMITS }),
    ...(workspace !== null && {
      place: { backend: "local", spec: { workingDir: workspace }, perUser: file !== null },
    }),
    ...(studio !== null && { studioDirectory: studio }),
  };
}

/** How runs are executed: by the server itself, or by the workers of the queue. */
function runningOf({ values }: Pick<CommandContext, "values">): Partial<ServerInit> {
  const [queue, webhook] = [textOption(values, "queue"), textOption(values, "webhook")];
  if (queue !== undefined) {
    const given = ["ask", "webhook"].find((name) => values[name] !== undefined);
    if (given === undefined) return { queue: bullmqQueue({ url: queue }) };
    throw new SessionError(
      "INVALID_OPTION",
      `With --queue, workers execute the runs; give --${given} to skein worker instead.`,
    );
  }
  const parkAfter = countOption(values, "park-after", 0);
  return {
    ask: askOption({ values }),
    ...(parkAfter !== undefined && { park: { afterMs: parkAfter * 1000 } }),
    ...(webhook !== undefined && { webhook: { url: webhook } }),
  };
}

/** The tools of the agents beside the workspace tools; null if the module of `--agents` defines them. */
async function toolsFor(context: CommandContext): Promise<ProgramTools | null> {
  const { values } = context;
  const file = ["agents", "queue"].find((name) => values[name] !== undefined);
  if (file === undefined) return openProgramTools(context);
  const given = ["tools", "mcp"].find((name) => values[name] !== undefined);
  if (given === undefined) return null;
  throw new SessionError(
    "INVALID_OPTION",
    `With --${file}, the module of --agents defines the tools; leave out --${given}.`,
  );
}

interface OfferedAgents extends AgentsFile {
  /** The model of the agent that is offered if the options name none; null if they name agents. */
  readonly chosen: Model | null;
}

/** The agents of `--agents`, or those of `--agent`. */
async function offeredBy(
  { values }: CommandContext,
  ownTools: readonly Tool[],
  known: OfferedModels,
): Promise<OfferedAgents> {
  const [file, named] = [textOption(values, "agents"), textsOption(values, "agent")];
  if (file === undefined) {
    const ofWorkspace = textOption(values, "workspace") === undefined ? [] : workspaceTools;
    const tools = [...ofWorkspace, ...ownTools];
    const prompt = textOption(values, "prompt") ?? "";
    const others = { models: [], groups: () => ({}) };
    if (named.length > 0) return { agents: agentsOf(named, { prompt, tools }), chosen: null, ...others };
    const agent = defaultAgent(prompt, tools, known);
    return { agents: [agent], chosen: agent.model, ...others };
  }
  if (named.length > 0) throw new SessionError("INVALID_OPTION", "Give --agents or --agent, not both.");
  return { ...(await loadAgents(file)), chosen: null };
}

/** The directory of the studio; null if only the library was built. */
async function studioDirectory(): Promise<string | null> {
  try {
    await access(`${STUDIO}index.html`);
    return STUDIO;
  } catch {
    return null;
  }
}

async function managerOf(store: SessionStore, { file }: ServerAccess): Promise<SessionManager> {
  return file === null ? openManager(store) : openServiceManager(store);
}

/** The limits of a server with a token file, as one line. */
function limitsLine({ sessionTtl, maxSessionsPerUser, maxTurnsPerSession }: SessionConfig): string {
  const caps = `A user may have ${maxSessionsPerUser} open sessions of ${maxTurnsPerSession} turns each; a request beyond that gets CAPACITY until they close or delete one`;
  const expiry =
    sessionTtl === 0
      ? "sessions do not expire (SKEIN_SESSION_TTL is not set)"
      : `a session that was idle for ${sessionTtl} s expires and cannot be reactivated (SKEIN_SESSION_TTL)`;
  return `${caps} (SKEIN_MAX_SESSIONS_PER_USER, SKEIN_MAX_TURNS_PER_SESSION); ${expiry}.`;
}

function agentsOf(
  given: readonly string[],
  { prompt, tools }: { readonly prompt: string; readonly tools: readonly Tool[] },
): readonly Agent[] {
  const names = new Set<string>();
  return given.map((text) => {
    const [, name, model] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (name === undefined || model === undefined || names.has(name)) {
      throw new SessionError(
        "INVALID_OPTION",
        `--agent is ${show(text)}; give NAME=MODEL with a name that no other agent has, as in clerk=offline.`,
      );
    }
    names.add(name);
    return createAgent({ name, prompt, model: createModel(model), tools, builtInTools: false });
  });
}

/**
 * Says which model answers although nobody named it: the first one with a key, whose answers cost money, or the offline
 * model because no key is set or the package of the provider is not installed.
 */
function chosenLine({ provider, id, unnamed }: Model, { problems }: OfferedModels): string {
  if (unnamed !== true) {
    const name = `${provider}/${id}`;
    return `No agent is configured: the agent assistant answers with ${name}, the first model whose key is set. Choose another with --agent NAME=PROVIDER/MODEL.`;
  }
  const why = problems.length === 0 ? "no API key is set" : "no model of a provider can be used";
  return [...problems, `No agent is configured and ${why}: ${OFFLINE_ANSWERS}`].join("\n");
}

/** The agent of a server without named agents: with the first model that can be used here, else with the offline model. */
function defaultAgent(prompt: string, tools: readonly Tool[], { models }: OfferedModels): Agent {
  const withKey = models.find(({ provider }) => provider !== "offline");
  const model = withKey ?? { ...createModel("offline"), unnamed: true as const };
  return createAgent({ name: "assistant", prompt, model, tools, builtInTools: false });
}
