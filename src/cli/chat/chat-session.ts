import {
  type Approval,
  type Content,
  type Model,
  SessionError,
  type SessionHead,
  type SessionManager,
  type SessionTree,
  type Tool,
  type AskPolicy,
} from "../../index.ts";
import { readRequest } from "../../agent/persist/claim-run.ts";
import { readStart } from "../../agent/persist/read-start.ts";
import { agentOf } from "../../lifecycle/runs/due-run.ts";
import { openRunsOf } from "../../lifecycle/runs/list-runs.ts";
import { show } from "../../session/errors.ts";
import { nextRun, type OpenRun } from "../../session/log/open-runs.ts";
import { suggestion } from "../../internal/nearest.ts";
import { LOCAL_USER } from "../../lifecycle/access.ts";
import { AT_TERMINAL } from "../open-manager.ts";
import { approvalOf, questionsOf, type WaitingQuestion } from "../open-questions.ts";
import { makeModelOf, modelNameOf, OFFLINE_MODEL } from "../options/session-model.ts";
import { CHAT_COMMANDS } from "./chat-commands.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import { type Answerer, CHAT_AGENT, type ChatQuestions, ChatTurns, type OtherAgents, type Word } from "./chat-turns.ts";
import { modelName } from "./model-name.ts";
import { describeOpenRuns } from "./open-run-words.ts";

const OFFLINE_ANSWERS =
  "No model was named, so the offline model answers, which is a program with fixed answers; --model PROVIDER/MODEL names another.";
const DEFAULT_PROMPT =
  "You are an agent at a command line. Look at the files of the workspace before you answer, and answer briefly.";
/** What a model is told of a call that was not allowed. */
const REASONS = {
  no: "The user does not want that.",
  nobody: "Nobody is there to agree to it; --ask says which calls need approval.",
};
/** How a word comes too late: the run may have ended, or someone else may have answered, while it was on its way. */
const TOO_LATE: readonly string[] = ["RUN_ENDED", "ENTRY_EXISTS", "QUESTION_NOT_FOUND", "CONFLICT"];

/** What a chat is made of. */
export interface ChatInit {
  readonly manager: SessionManager;
  /** Makes the model of a name such as `openai/gpt-5-mini`. */
  readonly models: (name: string) => Model;
  /** The directory that the tools act in, and that new sessions belong to. */
  readonly workspace: string;
  /** Which calls run without a question. */
  readonly ask: AskPolicy;
  /** What becomes of calls that need a person's word. */
  readonly questions: ChatQuestions;
  /** What the agent can call beside the workspace tools. */
  readonly tools?: readonly Tool[];
  /** The model to ask (default: the session's last one; one that needs no key where nothing has answered yet). */
  readonly model?: string;
  /** Agents that may go on with runs beside that of the chat (default: none). */
  readonly others?: OtherAgents;
  /** The instructions (default: the session's own, else those of every chat). */
  readonly system?: string;
}

/**
 * A conversation at a command line, without the command line: it takes lines and says what comes of them.
 *
 * - A line that ends with `\` goes on in the next one. One that begins with `/` and a word is a command, others are said to the
 *   model.
 * - A session is made when the first turn needs one. Everything else is on record before it is told.
 * - A refusal is told as a `problem`, and the chat goes on.
 */
export class ChatSession implements AsyncDisposable {
  readonly manager: SessionManager;
  readonly turns: ChatTurns = new ChatTurns();
  readonly workspace: string;
  /** Which calls of the next turns run without a question. */
  ask: AskPolicy;
  /** What the last listing showed, for commands that take a number of it. */
  readonly listed: { sessions: readonly string[]; checkpoints: readonly string[] } = { sessions: [], checkpoints: [] };
  readonly #init: ChatInit;
  #tree: SessionTree | null = null;
  #modelName: string;
  /** The model of that name, or why it cannot be had. */
  #model: Model | SessionError;
  #modelIsChosen: boolean;
  #begun: string[] = [];
  /** What a parked run asks at present. */
  #asked: WaitingQuestion | null = null;

  constructor(init: ChatInit) {
    this.#init = init;
    this.manager = init.manager;
    this.workspace = init.workspace;
    this.ask = init.ask;
    this.#model = init.models(init.model ?? OFFLINE_MODEL);
    this.#modelName = modelName(this.#model);
    this.#modelIsChosen = init.model !== undefined;
  }

  /** The session that turns go to; null before the first one. */
  get tree(): SessionTree | null {
    return this.#tree;
  }

  /** The same. @throws {SessionError} `INVALID_OPTION` before the first one. */
  get openTree(): SessionTree {
    if (this.#tree !== null) return this.#tree;
    throw new SessionError("INVALID_OPTION", "Nothing has been said yet; say something first.");
  }

  /** What answers. @throws {SessionError} where that is the session's own model, which cannot be had here. */
  get model(): Model {
    if (this.#model instanceof SessionError) throw this.#model;
    return this.#model;
  }

  /** The name of that model, as `provider/id`, also where it cannot be had. */
  get modelName(): string {
    return this.#modelName;
  }

  /** What becomes of calls that need a person's word. */
  get questions(): ChatQuestions {
    return this.#init.questions;
  }

  /** Whether the next line belongs to the last one. */
  get continues(): boolean {
    return this.#begun.length > 0;
  }

  /** Calls that wait for a person's word, in the turn under way or before a run goes on. */
  get pendingApprovals(): readonly Approval[] {
    return this.#asked === null ? this.turns.pendingApprovals : [approvalOf(this.#asked)];
  }

  /** Takes a line of input and tells what comes of it. */
  async *take(line: string): AsyncGenerator<ChatOutput> {
    if (line.endsWith("\\")) {
      this.#begun.push(line.slice(0, -1));
      return;
    }
    const text = [...this.#begun, line].join("\n").trim();
    this.#begun = [];
    if (text === "") return;
    yield* this.refusing(this.perform(text));
  }

  /** Does a command, or says the text where it is none. */
  perform(text: string): AsyncGenerator<ChatOutput> {
    const [, name, argument = ""] = /^\/(\w+)(?:\s+(.*))?$/s.exec(text) ?? [];
    return name === undefined ? this.say(text) : this.#command(name, argument.trim());
  }

  /** Says something to the model and tells what comes of it. */
  async *say(content: Content): AsyncGenerator<ChatOutput> {
    const isNew = this.#tree === null;
    const tree = this.#tree ?? (await this.create());
    if (isNew) yield this.#opened(tree);
    if (isNew && !this.#modelIsChosen && this.model.provider === "offline") yield notice(OFFLINE_ANSWERS);
    yield* this.turns.answer(tree, content, await this.answererFor(tree));
  }

  /** Makes a session for the turns to come. */
  async create(): Promise<SessionTree> {
    const { workspace, system = DEFAULT_PROMPT } = this.#init;
    const { sessionId } = await this.manager.create({
      userId: LOCAL_USER,
      cwd: workspace,
      systemPrompt: system,
      sandbox: { backend: "local", spec: { workingDir: workspace }, handleId: null },
    });
    this.#tree = await this.manager.open(sessionId);
    return this.#tree;
  }

  /** Forgets the lines of an input that was not finished. */
  forgetBegun(): void {
    this.#begun = [];
  }

  /** Goes on in a session that is there, and says how it was left. One that cannot be opened leaves the chat where it was. */
  async *open(sessionId: string): AsyncGenerator<ChatOutput> {
    const tree = yield* this.enter(sessionId);
    yield* this.#tellHowLeft(await tree.refresh());
    if (this.#model instanceof SessionError) yield { type: "problem", text: this.#model.message };
  }

  /** Goes on in a session that is there, with the model that last answered in it. */
  async *enter(sessionId: string): AsyncGenerator<ChatOutput, SessionTree> {
    const tree = await this.manager.open(sessionId);
    await this.#tree?.close();
    this.#tree = tree;
    this.listed.checkpoints = [];
    await this.#takeModelOf(await tree.refresh());
    yield this.#opened(tree);
    return tree;
  }

  /** Stops what is under way; whether there was anything. */
  interrupt(): boolean {
    return this.turns.interrupt();
  }

  /** Gives a person's word on a call. A question that no longer waits for it is left alone. */
  async decide(question: string, word: Word): Promise<void> {
    if (!this.pendingApprovals.some((approval) => approval.question === question)) return;
    if (word === "stopped") return void this.interrupt();
    const reason = word === "yes" ? null : REASONS[word];
    const parked = this.#asked?.run.sessionId;
    try {
      if (parked === undefined) await this.turns.decide(question, reason);
      else if (reason === null) await this.manager.approve(parked, question, {}, AT_TERMINAL);
      else await this.manager.deny(parked, question, { reason }, AT_TERMINAL);
    } catch (error) {
      if (!(error instanceof SessionError && TOO_LATE.includes(error.code))) throw error;
    }
  }

  /** Goes on with the run that is due in the session, or says why none is. Whoever is there is asked first what it asks. */
  recover(tree: SessionTree): AsyncGenerator<ChatOutput> {
    return this.turns.stoppable((signal) => this.#recover(tree, signal));
  }

  async *#recover(tree: SessionTree, signal: AbortSignal): AsyncGenerator<ChatOutput> {
    const head = await tree.refresh();
    if (head.openRuns.length === 0) return yield notice("No run was interrupted.");
    await this.#checkAgent(head);
    if (this.questions === "asked") yield* this.#askParked(head, signal);
    const last = (await tree.toSession()).transcript.rows.at(-1)?.message;
    const isWhole = last?.role === "assistant" && (last.toolCalls ?? []).length === 0;
    // All that is left to do then is to put the end of the run on record.
    if (isWhole && head.openRuns.every(({ state }) => state === "started")) {
      yield notice("The last answer is whole; say what comes next.");
    }
    const models = (name: string): Model => (this.#modelIsChosen ? this.model : this.#init.models(name));
    const by = await this.answererFor(tree);
    const went = yield* this.turns.recover(this.manager, tree, by, { ...this.#others, models });
    if (!went) yield* this.#tellHowLeft(await tree.refresh());
  }

  /** Before anyone is asked anything. @throws {SessionError} `AGENT_NOT_FOUND` for a run that is for an agent which is not here. */
  async #checkAgent(head: SessionHead): Promise<void> {
    const { store } = this.manager;
    const run = nextRun(head.openRuns, new Date().toISOString()) ?? (head.openRuns[0] as OpenRun);
    const request = await readRequest(store, head.header.id, run.runId);
    if (request?.group !== undefined) return;
    const name = await agentOf(store, head, run, request);
    const { agents, unnamed } = this.#others;
    if (name === null ? run.state === "requested" || unnamed !== null : name === CHAT_AGENT || agents.has(name)) return;
    const which = `Run ${show(run.runId)} of session ${head.header.id}`;
    throw new SessionError(
      "AGENT_NOT_FOUND",
      name === null
        ? `${which} was begun by an agent that its log does not name; name the one that is to go on, as in skein recover --agent ${CHAT_AGENT}.`
        : `${which} is for agent ${show(name)}, and here is ${show(CHAT_AGENT)}: go on with it in the program that has it, or give skein recover its agents with --agents FILE; skein cancel ends it.`,
    );
  }

  get #others(): OtherAgents {
    return this.#init.others ?? { agents: new Map(), unnamed: null };
  }

  async *#askParked(head: SessionHead, signal: AbortSignal): AsyncGenerator<ChatOutput> {
    const runs = await openRunsOf(this.manager.store, head);
    try {
      for (const waiting of questionsOf(runs.filter(({ state }) => state === "parked"))) {
        this.#asked = waiting;
        yield { type: "question", approval: approvalOf(waiting) };
        signal.throwIfAborted();
      }
    } finally {
      this.#asked = null;
    }
  }

  /** Asks another model from here on. */
  async useModel(name: string): Promise<void> {
    const model = this.#init.models(name);
    await this.#tree?.appendModelChange(model.provider, model.id);
    this.#model = model;
    this.#modelName = modelName(model);
    this.#modelIsChosen = true;
  }

  /** What answers the next turn of the session. */
  async answererFor(tree: SessionTree): Promise<Answerer> {
    const { system, workspace, questions, tools = [] } = this.#init;
    const { systemPrompt } = await tree.store.settings(tree.id, (await tree.refresh()).path);
    const prompt = system ?? systemPrompt ?? DEFAULT_PROMPT;
    const model = (): Model => this.model;
    return {
      get model() {
        return model();
      },
      ...{ prompt, ask: this.ask, questions, workspace, tools },
    };
  }

  /** Tells a refusal as a problem, after which the chat goes on. */
  async *refusing(outputs: AsyncIterable<ChatOutput>): AsyncGenerator<ChatOutput> {
    try {
      yield* outputs;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      yield { type: "problem", text: error.message };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.interrupt();
    await this.#tree?.close();
  }

  async *#command(name: string, argument: string): AsyncGenerator<ChatOutput> {
    const command = Object.hasOwn(CHAT_COMMANDS, name) ? CHAT_COMMANDS[name] : undefined;
    if (command === undefined) {
      const meant = suggestion(name, Object.keys(CHAT_COMMANDS), "/");
      throw new SessionError("INVALID_OPTION", `There is no command /${name};${meant || " /help lists them."}`);
    }
    if (command.argument === "needed" && argument === "") {
      throw new SessionError("INVALID_OPTION", `Write ${command.usage}: ${command.summary}`);
    }
    if (command.on === "anything") yield* command.run(this, argument);
    else yield* command.run(this, argument, this.openTree);
  }

  #opened({ id }: SessionTree): ChatOutput {
    return { type: "session-opened", sessionId: id, model: this.#modelName };
  }

  /** Asks the model that the session was last answered by, unless the user has chosen one; never the offline one instead. */
  async #takeModelOf(head: SessionHead): Promise<void> {
    if (this.#modelIsChosen) return;
    const { store } = this.manager;
    const begun = head.openRuns.find(({ state }) => state !== "requested");
    const running = begun === undefined ? null : await readStart(store, head, begun.runId);
    const own = running?.agent === CHAT_AGENT ? running.model : undefined;
    const name = own ?? (await modelNameOf(store, head));
    this.#modelName = name ?? "no model";
    try {
      this.#model = makeModelOf(head, name, this.#init.models);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      this.#model = error;
    }
  }

  async *#tellHowLeft(head: SessionHead): AsyncGenerator<ChatOutput> {
    const text = describeOpenRuns(await openRunsOf(this.manager.store, head));
    if (text !== null) yield notice(text);
  }
}

/** Whether a chat goes on after an error: what we refuse, and what the file system does. */
function isRefusal(error: unknown): error is Error {
  return error instanceof SessionError || (error instanceof Error && "syscall" in error);
}
