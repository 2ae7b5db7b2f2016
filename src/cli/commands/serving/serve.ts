import { once } from "node:events";
import { access } from "node:fs/promises";
import { createToken } from "../../../http/api-token.ts";
import { createServer, type ServerInit } from "../../../http/create-server.ts";
import { announceServer, type LocalServer } from "../../../http/local-servers.ts";
import { isLoopback } from "../../../http/loopback.ts";
import { openTokenFile, type TokenFile } from "../../../http/token-file.ts";
import {
  type Agent,
  createAgent,
  createModel,
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
import { FOLLOW_OPTION, followPrograms } from "./follow-programs.ts";
import { offeredModels } from "../../options/offered-models.ts";
import { LOCAL_USER } from "../../../lifecycle/access.ts";
import { openManager, openServiceManager } from "../../open-manager.ts";
import { STUDIO } from "../../package-files.ts";
import { openProgramTools, type ProgramTools, TOOL_OPTIONS } from "../../options/program-tools.ts";
import { sampleGroup } from "./sample-group.ts";
import { makeSampleSessions } from "./sample-sessions.ts";
import { addressWithToken } from "./address-with-token.ts";
import { ASK_OPTIONS, askOption } from "../../options/ask-option.ts";
import { workspaceAt } from "../../options/workspace-option.ts";

/** One person on their own machine has none of the limits that keep users from each other. */
const LOCAL_LIMITS = { rate: null, storedSessionsPerUser: null, storedBytesPerUser: null } as const;
const OPEN_TO_ALL =
  "--open-to-this-machine: every account and every program of this machine can use this server without a token, as its administrator, and run its tools as you.";

const OFFLINE_ANSWERS =
  "No agent was named and no key is set: assistant answers with the offline model, which is a program with fixed answers, and only where no other model has answered; --agent NAME=PROVIDER/MODEL names another.";

/** Serves sessions over HTTP. */
export const serve: Command = {
  name: "serve",
  summary: "Serve sessions and the studio over HTTP until it is told to stop.",
  details:
    "The address is for a browser, which gets the studio, and for programs. Models of providers whose key is in the environment can be asked for beside the agents' own. The tools of --tools and --mcp, and those of skein.config.mjs in the current directory, are for all agents and users; their code runs in the server, with the rights of its account. Without --token-file the server makes a token for the user who starts it, which is in the address that it prints and which skein open finds again, and sessions neither expire nor reach a limit. With it, users see their own sessions, their tools act in a directory of their own below the workspace and must be isolated, and a token that is added or taken out counts within a second; each user may have SKEIN_MAX_SESSIONS_PER_USER open sessions (100) of SKEIN_MAX_TURNS_PER_SESSION turns (1000) and gets CAPACITY beyond that until they close or delete one, and sessions expire only where SKEIN_SESSION_TTL is set. SIGTERM and Ctrl-C let runs finish first; a second one does not wait.",
  arguments: [],
  options: {
    host: { value: "HOST", default: "127.0.0.1", what: "where to listen; anything but this machine needs tokens" },
    port: { value: "N", default: "4117", what: "the port; 0 for any that is free" },
    "token-file": { value: "FILE", what: "who may come in, made with skein token" },
    "park-after": {
      value: "SECONDS",
      default: "30",
      what: "how long a run waits for an answer before it lets go of its session, and goes on after the answer",
    },
    webhook: { value: "URL", what: "where to post that a run has parked and waits for an answer" },
    "open-to-this-machine": {
      what: "no token: every account and every program of this machine is the administrator, and runs tools as you",
    },
    queue: {
      value: "URL",
      what: "where skein worker listens, as redis://host:6379; the server then runs nothing itself, and the workers say how",
    },
    agents: AGENTS_OPTION,
    agent: {
      value: "NAME=MODEL",
      repeated: true,
      what: "an agent to offer, with its model as provider/model (default: assistant, with a model whose key is set, else the offline one)",
    },
    workspace: { value: "DIRECTORY", what: "where the workspace tools act; without it agents have none of them" },
    ...TOOL_OPTIONS,
    ...ASK_OPTIONS,
    prompt: { value: "TEXT", default: "You are a helpful assistant.", what: "the instructions of the agents" },
    drain: { value: "AGE", default: "10s", what: "how long runs may go on after it was told to stop" },
    follow: FOLLOW_OPTION,
    samples: { what: "make a few sessions to look at where the store has none, and offer a group of agents" },
    log: { what: "tell every request on the error output, as a line of JSON; failures of the server are always told" },
  },
  examples: [
    { line: "skein serve", what: "for yourself, with the model that needs no key" },
    { line: "skein serve --follow claude-code,codex,pi", what: "with your sessions of these programs, as they grow" },
    { line: "skein serve --workspace . --samples", what: "with tools for the files here, and sessions to look at" },
    {
      line: "skein serve --host 0.0.0.0 --token-file ./tokens --agent clerk=openai/gpt-5-mini",
      what: "for users with a token",
    },
  ],
  json: { url: "where it listens", token: "what lets its user in, where it made one" },
  store: "made",
  runsTools: true,
  async run(context) {
    const { values, signal } = context;
    using door = await doorOf(context);
    await using opened = await toolsFor(context);
    const offered = await offeredBy(context, opened?.tools ?? []);
    const init = {
      ...(await initOf(context, door)),
      agents: offered.agents,
      models: [...offered.models, ...offeredModels()],
    };
    const drainMs = (ageOption(values, "drain") ?? 10) * 1000;
    await using store = await context.openStore();
    await using manager = managerOf(store, door);
    const samples = values["samples"] === true;
    if (samples) await makeSampleSessions(manager);
    const groups = samples ? { newsroom: sampleGroup(manager) } : {};
    const { queue } = init;
    await using _queue = queue === undefined ? null : { [Symbol.asyncDispose]: () => queue.close() };
    await using server = await createServer({ ...init, manager, groups: { ...groups, ...offered.groups(manager) } });
    const url = await server.listen();
    manager.start();
    const followed = followPrograms(context, store);
    const { token } = door;
    if (values["open-to-this-machine"] === true) context.fail(OPEN_TO_ALL);
    await using _announced = token === null ? null : await announce(context, { url, token });
    if (context.json) context.printJson(token === null ? { url } : { url, token });
    else
      context.print(
        `Skein listens on ${token === null ? url : addressWithToken({ url, token })}; stop it with Ctrl-C.`,
      );
    if (door.file !== null && !context.json) context.print(limitsLine(manager.config));
    if (!context.json && queue === undefined && offered.agents.some(({ model }) => model.unnamed === true))
      context.print(OFFLINE_ANSWERS);
    if (!signal.aborted) await once(signal, "abort");
    await server.close({ drainMs });
    await followed;
    return 0;
  },
};

/** Who may come in: whom a file names, the user who starts it, or everyone on this machine. */
interface ServeDoor extends Disposable {
  readonly file: TokenFile | null;
  /** The token that was made for the user. */
  readonly token: string | null;
}

async function doorOf({ values, fail }: CommandContext): Promise<ServeDoor> {
  const [path, host = ""] = [textOption(values, "token-file"), textOption(values, "host")];
  const open = values["open-to-this-machine"] === true;
  if (path === undefined) {
    if (!isLoopback(host)) {
      const message = `--host is ${show(host)}; anything but this machine needs tokens, so give --token-file.`;
      throw new SessionError("INVALID_OPTION", message);
    }
    return { file: null, token: open ? null : createToken(), [Symbol.dispose]: () => {} };
  }
  if (open) {
    throw new SessionError("INVALID_OPTION", "--open-to-this-machine lets everyone in; leave it out, or --token-file.");
  }
  hideFromSandboxes(path);
  const file = await openTokenFile(path, { onProblem: ({ message }) => fail(message) });
  return { file, token: null, [Symbol.dispose]: () => file[Symbol.dispose]() };
}

/** A server that cannot be found again still serves. */
async function announce({ fail }: CommandContext, server: LocalServer): Promise<AsyncDisposable | null> {
  try {
    return await announceServer(server);
  } catch (error) {
    const { message } = error as Error;
    fail(`The token cannot be kept for skein open, so copy the address: ${message}`);
    return null;
  }
}

async function initOf({ values, fail }: CommandContext, { file, token }: ServeDoor): Promise<ServerInit> {
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

/** How runs are run: by the server itself, or by the workers that hear the queue. */
function runningOf({ values }: Pick<CommandContext, "values">): Partial<ServerInit> {
  const [queue, webhook] = [textOption(values, "queue"), textOption(values, "webhook")];
  if (queue !== undefined) {
    const given = ["ask", "webhook"].find((name) => values[name] !== undefined);
    if (given === undefined) return { queue: bullmqQueue({ url: queue }) };
    throw new SessionError(
      "INVALID_OPTION",
      `With --queue, workers run what is asked for; give --${given} to skein worker.`,
    );
  }
  const parkAfter = countOption(values, "park-after", 0);
  return {
    ask: askOption({ values }),
    ...(parkAfter !== undefined && { park: { afterMs: parkAfter * 1000 } }),
    ...(webhook !== undefined && { webhook: { url: webhook } }),
  };
}

/** What the agents of the command line can call beside the workspace tools; null where a file says what agents can. */
async function toolsFor(context: CommandContext): Promise<ProgramTools | null> {
  const { values } = context;
  const file = ["agents", "queue"].find((name) => values[name] !== undefined);
  if (file === undefined) return openProgramTools(context);
  const given = ["tools", "mcp"].find((name) => values[name] !== undefined);
  if (given === undefined) return null;
  throw new SessionError(
    "INVALID_OPTION",
    `With --${file}, the file of --agents says what can be called; leave out --${given}.`,
  );
}

/** The agents of a file, or those of the command line. */
async function offeredBy({ values }: CommandContext, others: readonly Tool[]): Promise<AgentsFile> {
  const [file, named] = [textOption(values, "agents"), textsOption(values, "agent")];
  if (file === undefined) {
    const ofWorkspace = textOption(values, "workspace") === undefined ? [] : workspaceTools;
    const tools = [...ofWorkspace, ...others];
    const prompt = textOption(values, "prompt") ?? "";
    const agents = named.length > 0 ? agentsOf(named, { prompt, tools }) : [defaultAgent(prompt, tools)];
    return { agents, models: [], groups: () => ({}) };
  }
  if (named.length > 0) throw new SessionError("INVALID_OPTION", "Give --agents or --agent, not both.");
  return loadAgents(file);
}

/** Null where only the library was built. */
async function studioDirectory(): Promise<string | null> {
  try {
    await access(`${STUDIO}index.html`);
    return STUDIO;
  } catch {
    return null;
  }
}

function managerOf(store: SessionStore, { file }: ServeDoor): SessionManager {
  return file === null ? openManager(store) : openServiceManager(store);
}

/** What users meet where a token file lets them in: which sessions are refused, and which end. */
function limitsLine({ sessionTtl, maxSessionsPerUser, maxTurnsPerSession }: SessionConfig): string {
  const caps = `A user may have ${maxSessionsPerUser} open sessions of ${maxTurnsPerSession} turns each; beyond that they get CAPACITY until they close or delete one`;
  const expiry =
    sessionTtl === 0
      ? "no session expires (SKEIN_SESSION_TTL is not set)"
      : `a session that was idle for ${sessionTtl} s expires for good (SKEIN_SESSION_TTL)`;
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
      throw new SessionError("INVALID_OPTION", `--agent is ${show(text)}; give each agent once, as in clerk=offline.`);
    }
    names.add(name);
    return createAgent({ name, prompt, model: createModel(model), tools, builtInTools: false });
  });
}

/** The agent of a server for which none is named: with the first model whose key is set, else with the offline one. */
function defaultAgent(prompt: string, tools: readonly Tool[]): Agent {
  const withKey = offeredModels().find(({ provider }) => provider !== "offline");
  const model = withKey ?? { ...createModel("offline"), unnamed: true as const };
  return createAgent({ name: "assistant", prompt, model, tools, builtInTools: false });
}
