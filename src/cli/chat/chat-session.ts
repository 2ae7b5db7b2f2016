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
import type { OpenRun } from "../../session/log/open-runs.ts";
import { hasBegun, nextRun } from "../../session/log/run-fold.ts";
import { suggestion } from "../../internal/nearest.ts";
import { LOCAL_USER } from "../../lifecycle/access.ts";
import { AT_TERMINAL } from "../open-manager.ts";
import { approvalOf, questionsOf, type WaitingQuestion } from "../open-questions.ts";
import { makeModelOf, modelNameOf, OFFLINE_MODEL } from "../options/session-model.ts";
import { CHAT_COMMANDS } from "./chat-commands.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import { type Answerer, CHAT_AGENT, type ChatQuestions, ChatTurns, type OtherAgents, type Word } from "./chat-turns.ts";
import { modelName } from "./model-name.ts";
import { describeOpenRuns } from "./describe-open-runs.ts";

const OFFLINE_ANSWERS =
  "No model is chosen, so the offline model answers: it is not a language model and only gives fixed answers. Choose a model with --model PROVIDER/MODEL.";
const DEFAULT_PROMPT =
  "You are an agent at a command line. Look at the files of the workspace before you answer, and answer briefly.";
/** The reason that the model gets for a denied call. */
const REASONS = {
  no: "The user does not want that.",
  nobody: "No person can approve it here; --ask sets which calls need approval.",
};
/** Errors that mean an answer came too late: the run has ended, or another person has answered. */
const TOO_LATE: readonly string[] = ["RUN_ENDED", "ENTRY_EXISTS", "QUESTION_NOT_FOUND", "CONFLICT"];

/** The options of a chat. */
export interface ChatInit {
  readonly manager: SessionManager;
  /** Creates the model of a name such as `openai/gpt-5-mini`. */
  readonly models: (name: string) => Model;
  /** The directory that the tools act in, and that new sessions belong to. */
  readonly workspace: string;
  /** Which calls need approval. */
  readonly ask: AskPolicy;
  /** What happens to calls that need approval. */
  readonly questions: ChatQuestions;
  /** Tools of the agent beside the workspace tools. */
  readonly tools?: readonly Tool[];
  /** The model to ask (default: the session's last model, or the offline model in a session without answers). */
  readonly model?: string;
  /** Other agents whose runs may be recovered here (default: none). */
  readonly others?: OtherAgents;
  /** The instructions of the agent (default: those of the session, else `DEFAULT_PROMPT`). */
  readonly system?: string;
}

/**
 * A chat without its terminal: it gets lines of input and yields what to print.
 *
 * - A line that ends with `\\` is continued by the next one. A line that begins with `/` and a word is a command; any
 *   other line is sent to the model.
 * - A session is created when the first turn needs one. Everything else is appended to the log before it is printed.
 * - A refusal is yielded as a `problem`, and the chat continues.
 */
export class ChatSession implements AsyncDisposable {
  readonly manager: SessionManager;
  readonly turns: ChatTurns = new ChatTurns();
  readonly workspace: string;
  /** Which calls of the next turns need approval. */
  ask: AskPolicy;
  /** The ids of the last listings, for commands that accept a number instead of an id. */
  readonly listed: { sessions: readonly string[]; checkpoints: readonly string[] } = { sessions: [], checkpoints: [] };
  readonly #init: ChatInit;
  #tree: SessionTree | null = null;
  #modelName: string;
  /** The model of that name, or the error if it cannot be created. */
  #model: Model | SessionError;
  #modelIsChosen: boolean;
  #pendingLines: string[] = [];
  /** The question of a parked run that is being asked now. */
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

  /** The session that turns go to. @throws {SessionError} `INVALID_OPTION` before the first turn. */
  get openTree(): SessionTree {
    if (this.#tree !== null) return this.#tree;
    throw new SessionError("INVALID_OPTION", "There is no session yet; write a message first.");
  }

  /** The model that answers. @throws {SessionError} if the session's own model cannot be created here. */
  get model(): Model {
    if (this.#model instanceof SessionError) throw this.#model;
    return this.#model;
  }

  /** The model's name as `provider/id`, also if the model cannot be created. */
  get modelName(): string {
    return this.#modelName;
  }

  /** What happens to calls that need approval. */
  get questions(): ChatQuestions {
    return this.#init.questions;
  }

  /** True if the next line continues the last one. */
  get continues(): boolean {
    return this.#pendingLines.length > 0;
  }

  /** Calls that wait for approval, in the current turn or before a run is recovered. */
  get pendingApprovals(): readonly Approval[] {
    return this.#asked === null ? this.turns.pendingApprovals : [approvalOf(this.#asked)];
  }

  /** Handles a line of input and yields the output. */
  async *handleLine(line: string): AsyncGenerator<ChatOutput> {
    if (line.endsWith("\\")) {
      this.#pendingLines.push(line.slice(0, -1));
      return;
    }
    const text = [...this.#pendingLines, line].join("\n").trim();
    this.#pendingLines = [];
    if (text === "") return;
    yield* this.catchRefusals(this.perform(text));
  }

  /** Runs a command; sends any other text to the model. */
  perform(text: string): AsyncGenerator<ChatOutput> {
    const [, name, argument = ""] = /^\/(\w+)(?:\s+(.*))?$/s.exec(text) ?? [];
    return name === undefined ? this.say(text) : this.#command(name, argument.trim());
  }

  /** Sends a user message to the model and yields the answer as it streams. */
  async *say(content: Content): AsyncGenerator<ChatOutput> {
    await this.model.prepare?.();
    await this.checkNotForeign();
    const isNew = this.#tree === null;
    const tree = this.#tree ?? (await this.create());
    if (isNew) yield this.#opened(tree);
    const isSilent = tree.head.messageCount === 0;
    if (isSilent && !this.#modelIsChosen && this.model.provider === "offline") yield notice(OFFLINE_ANSWERS);
    yield* this.turns.answer(tree, content, await this.answererFor(tree));
  }

  /**
   * Checked before a turn that would end the session's interrupted run, which a program with another agent can still
   * continue.
   *
   * @throws {SessionError} `AGENT_NOT_FOUND` if such a run is open.
   */
  async checkNotForeign(): Promise<void> {
    const head = await this.#tree?.refresh();
    const begun = head?.openRuns.find(({ state, cancelled }) => state === "started" && cancelled !== true);
    if (head === undefined || begun === undefined) return;
    const { store } = this.manager;
    const name = await agentOf(store, head, begun, await readRequest(store, head.header.id, begun.runId));
    if (name === null || name === CHAT_AGENT || this.#others.agents.has(name)) return;
    throw new SessionError(
      "AGENT_NOT_FOUND",
      `Run ${show(begun.runId)} of session ${head.header.id} is for agent ${show(name)} and has not ended: continue it in the program that has that agent, or end it with skein cancel.`,
    );
  }

  /** Creates the session for the next turns. */
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

  /** Discards the lines of an unfinished input. */
  discardPendingLines(): void {
    this.#pendingLines = [];
  }

  /**
   * Switches to a stored session and tells about its open runs. If the session cannot be opened, the chat stays in the
   * current one.
   */
  async *open(sessionId: string): AsyncGenerator<ChatOutput> {
    const tree = yield* this.enter(sessionId);
    yield* this.#noticeOpenRuns(await tree.refresh());
    if (this.#model instanceof SessionError) yield { type: "problem", text: this.#model.message };
  }

  /** Switches to a stored session, with the model that last answered in it. */
  async *enter(sessionId: string): AsyncGenerator<ChatOutput, SessionTree> {
    const tree = await this.manager.open(sessionId);
    await this.#tree?.close();
    this.#tree = tree;
    this.listed.checkpoints = [];
    await this.#useModelOf(await tree.refresh());
    yield this.#opened(tree);
    return tree;
  }

  /** Aborts the current work; returns whether there was any. */
  interrupt(): boolean {
    return this.turns.interrupt();
  }

  /** Answers a question about a call. Does nothing if the question is no longer open. */
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

  /**
   * Recovers the session's run, or prints why there is none to recover. The open questions of a parked run are asked
   * first.
   */
  recover(tree: SessionTree): AsyncGenerator<ChatOutput> {
    return this.turns.stoppable((signal) => this.#recover(tree, signal));
  }

  async *#recover(tree: SessionTree, signal: AbortSignal): AsyncGenerator<ChatOutput> {
    const head = await tree.refresh();
    if (head.openRuns.length === 0) return yield notice("There is no run to recover.");
    await this.#checkAgent(head);
    if (this.questions === "asked") yield* this.#askParked(head, signal);
    const last = (await tree.toSession()).transcript.rows.at(-1)?.message;
    const isWhole = last?.role === "assistant" && (last.toolCalls ?? []).length === 0;
    // Only the end of the run is missing from the log then.
    if (isWhole && head.openRuns.every(({ state }) => state === "started")) {
      yield notice("The last answer is complete; write the next message.");
    }
    const models = (name: string): Model => (this.#modelIsChosen ? this.model : this.#init.models(name));
    const by = await this.answererFor(tree);
    const recovered = yield* this.turns.recover(this.manager, tree, by, { ...this.#others, models });
    if (!recovered) yield* this.#noticeOpenRuns(await tree.refresh());
  }

  /**
   * Checked before any question is asked. @throws {SessionError} `AGENT_NOT_FOUND` if the run is for an agent that is
   * not available here.
   */
  async #checkAgent(head: SessionHead): Promise<void> {
    const { store } = this.manager;
    const run = nextRun(head.openRuns, new Date().toISOString()) ?? (head.openRuns[0] as OpenRun);
    // Recovering records only its end.
    if (run.cancelled === true) return;
    const request = await readRequest(store, head.header.id, run.runId);
    if (request?.group !== undefined) return;
    const name = await agentOf(store, head, run, request);
    const { agents, unnamed } = this.#others;
    if (name === null ? !hasBegun(run) || unnamed !== null : name === CHAT_AGENT || agents.has(name)) return;
    const which = `Run ${show(run.runId)} of session ${head.header.id}`;
    throw new SessionError(
      "AGENT_NOT_FOUND",
      name === null
        ? `${which} was started by an agent that its log does not name; name the agent that recovers it, as in skein recover --agent ${CHAT_AGENT}.`
        : `${which} is for agent ${show(name)}, but this is ${show(CHAT_AGENT)}: recover it in the program that has that agent, or with skein recover --agents FILE; skein cancel ends it.`,
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

  /** Switches to another model for the next turns. */
  async useModel(name: string): Promise<void> {
    const model = this.#init.models(name);
    await model.prepare?.();
    await this.#tree?.appendModelChange(model.provider, model.id);
    this.#model = model;
    this.#modelName = modelName(model);
    this.#modelIsChosen = true;
  }

  /** The settings of the agent that answers the next turn. */
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

  /** Yields a refusal as a `problem` instead of throwing it. */
  async *catchRefusals(outputs: AsyncIterable<ChatOutput>): AsyncGenerator<ChatOutput> {
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

  /**
   * Uses the model that last answered in the session, unless the user has chosen one. Never replaces it by the offline
   * model.
   */
  async #useModelOf(head: SessionHead): Promise<void> {
    if (this.#modelIsChosen) return;
    const { store } = this.manager;
    const begun = head.openRuns.find(hasBegun);
    const running = begun === undefined ? null : await readStart(store, head, begun.runId);
    const own = running?.agent === CHAT_AGENT ? running.model : undefined;
    const name = own ?? (await modelNameOf(store, head));
    this.#modelName = name ?? "no model";
    try {
      this.#model = await makeModelOf(head, name, this.#init.models);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      this.#model = error;
    }
  }

  async *#noticeOpenRuns(head: SessionHead): AsyncGenerator<ChatOutput> {
    const here = new Set([CHAT_AGENT, ...this.#others.agents.keys()]);
    const text = describeOpenRuns(await openRunsOf(this.manager.store, head), here);
    if (text !== null) yield notice(text);
  }
}

/** True for errors that a chat reports and survives: those of Skein, and those of the file system. */
function isRefusal(error: unknown): error is Error {
  return error instanceof SessionError || (error instanceof Error && "syscall" in error);
}
