import { once } from "node:events";
import { access } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createServer, type ServerInit } from "../../http/create-server.ts";
import {
  type Agent,
  createAgent,
  createModel,
  SessionError,
  SessionManager,
  type SessionStore,
  sessionConfigFromEnvironment,
  type Tool,
  workspaceTools,
} from "../../index.ts";
import { show } from "../../session/errors.ts";
import { type Command, type CommandContext, textOption, textsOption } from "../command.ts";
import { ageOption, countOption } from "../option-values.ts";
import { offeredModels } from "../offered-models.ts";
import { openManager } from "../open-manager.ts";
import { sampleGroup } from "../sample-group.ts";
import { makeSampleSessions } from "../sample-sessions.ts";
import { readTokenFile } from "../token-file.ts";
import { UNASKED_OPTIONS, unaskedOption } from "../unasked-option.ts";
import { workspaceAt } from "../workspace-option.ts";

/** Where the build puts the studio. */
const STUDIO = fileURLToPath(new URL("../../studio/", import.meta.url));

/** Serves sessions over HTTP. */
export const serve: Command = {
  name: "serve",
  summary: "Serve sessions and the studio over HTTP until it is told to stop.",
  details:
    "The address is for a browser, which gets the studio, and for programs. Models of providers whose key is in the environment can be asked for beside the agents' own. Without --token-file everyone on this machine may come in and nobody else, and sessions neither expire nor reach a limit. With it, users see their own sessions, their tools act in a directory of their own below the workspace and must be isolated, and the limits are those of the environment (SKEIN_SESSION_TTL and the like). SIGTERM and Ctrl-C let runs finish first; a second one does not wait.",
  arguments: [],
  options: {
    host: { value: "HOST", default: "127.0.0.1", what: "where to listen; anything but this machine needs tokens" },
    port: { value: "N", default: "4117", what: "the port; 0 for any that is free" },
    "token-file": { value: "FILE", what: "who may come in, made with skein token" },
    agent: {
      value: "NAME=MODEL",
      repeated: true,
      what: "an agent to offer, with its model as provider/model (default assistant=offline)",
    },
    workspace: { value: "DIRECTORY", what: "where the tools of the agents act; without it they have none" },
    ...UNASKED_OPTIONS,
    prompt: { value: "TEXT", default: "You are a helpful assistant.", what: "the instructions of the agents" },
    drain: { value: "AGE", default: "10s", what: "how long runs may go on after it was told to stop" },
    samples: { what: "make a few sessions to look at where the store has none, and offer a group of agents" },
    log: { what: "tell every request on the error output, as a line of JSON; failures of the server are always told" },
  },
  examples: [
    { line: "skein serve", what: "for this machine, with the model that needs no key" },
    { line: "skein serve --workspace . --samples", what: "with tools for the files here, and sessions to look at" },
    {
      line: "skein serve --host 0.0.0.0 --token-file ./tokens --agent clerk=openai/gpt-5-mini",
      what: "for users with a token",
    },
  ],
  json: { url: "where it listens" },
  store: "made",
  runsTools: true,
  async run(context) {
    const { values, signal } = context;
    const init = await initOf(context);
    const drainMs = (ageOption(values, "drain") ?? 10) * 1000;
    await using store = await context.openStore();
    await using manager = managerOf(store, init);
    const samples = values["samples"] === true;
    if (samples) await makeSampleSessions(manager);
    const groups = samples ? { newsroom: sampleGroup(manager) } : {};
    await using server = await createServer({ ...init, manager, groups });
    const url = await server.listen();
    manager.start();
    if (context.json) context.printJson({ url });
    else context.print(`Skein listens on ${url}; stop it with Ctrl-C.`);
    if (!signal.aborted) await once(signal, "abort");
    await server.close({ drainMs });
    return 0;
  },
};

async function initOf({ values, fail }: CommandContext): Promise<ServerInit> {
  const unasked = unaskedOption({ values, fail });
  const [host, port, file] = [
    textOption(values, "host"),
    countOption(values, "port", 0),
    textOption(values, "token-file"),
  ];
  const given = textOption(values, "workspace");
  const workspace = given === undefined ? null : await workspaceAt(given);
  const studio = await studioDirectory();
  return {
    agents: agentsOf(textsOption(values, "agent"), {
      prompt: textOption(values, "prompt") ?? "",
      tools: workspace === null ? [] : workspaceTools,
    }),
    unasked,
    models: offeredModels(),
    logger: (line) => {
      if (line.level === "error" || values["log"] === true) fail(JSON.stringify(line));
    },
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(file !== undefined && { tokens: await readTokenFile(file) }),
    ...(workspace !== null && {
      place: { backend: "local", spec: { workingDir: workspace }, perUser: file !== undefined },
    }),
    ...(studio !== null && { studioDirectory: studio }),
  };
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

function managerOf(store: SessionStore, { tokens }: ServerInit): SessionManager {
  if (tokens === undefined) return openManager(store);
  return new SessionManager({ store, config: sessionConfigFromEnvironment() });
}

function agentsOf(
  given: readonly string[],
  { prompt, tools }: { readonly prompt: string; readonly tools: readonly Tool[] },
): readonly Agent[] {
  const names = new Set<string>();
  return (given.length === 0 ? ["assistant=offline"] : given).map((text) => {
    const [, name, model] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (name === undefined || model === undefined || names.has(name)) {
      throw new SessionError("INVALID_OPTION", `--agent is ${show(text)}; give each agent once, as in clerk=offline.`);
    }
    names.add(name);
    return createAgent({ name, prompt, model: createModel(model), tools, builtInTools: false });
  });
}
