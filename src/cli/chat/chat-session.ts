import {
  type Approval,
  type Content,
  type Model,
  SessionError,
  type SessionHead,
  type SessionManager,
  type SessionTree,
  type Tool,
  type Unasked,
} from "../../index.ts";
import { openRunsOf } from "../../lifecycle/runs/list-runs.ts";
import { suggestion } from "../nearest.ts";
import { AT_TERMINAL, LOCAL_USER } from "../open-manager.ts";
import { approvalOf, questionsOf, type WaitingQuestion } from "../open-questions.ts";
import { CHAT_COMMANDS } from "./chat-commands.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import { type Answerer, type ChatQuestions, ChatTurns, type Word } from "./chat-turns.ts";
import { modelName } from "./model-name.ts";
import { describeOpenRuns } from "./open-run-words.ts";

const DEFAULT_MODEL = "offline/offline";
const DEFAULT_PROMPT =
  "You are an agent at a command line. Look at the files of the workspace before you answer, and answer briefly.";
/** What a model is told of a call that was not allowed. */
const REASONS = {
  no: "The user does not want that.",
  nobody: "Nobody is there to agree to it; --unasked says which calls run without a question.",
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
  readonly unasked: Unasked;
  /** What becomes of calls that need a person's word. */
  readonly questions: ChatQuestions;
  /** What the agent can call beside the workspace tools. */
  readonly tools?: readonly Tool[];
  /** The model to ask (default: the session's last one, else one that needs no key). */
  readonly model?: string;
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
  unasked: Unasked;
  /** What the last listing showed, for commands that take a number of it. */
  readonly listed: { sessions: readonly string[]; checkpoints: readonly string[] } = { sessions: [], checkpoints: [] };
  readonly #init: ChatInit;
  #tree: SessionTree | null = null;
  #model: Model;
  #modelIsChosen: boolean;
  #begun: string[] = [];
  /** What a parked run asks at present. */
  #asked: WaitingQuestion | null = null;

  constructor(init: ChatInit) {
    this.#init = init;
    this.manager = init.manager;
    this.workspace = init.workspace;
    this.unasked = init.unasked;
    this.#model = init.models(init.model ?? DEFAULT_MODEL);
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

  get model(): Model {
    return this.#model;
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
  }

  /** Goes on in a session that is there, with the model that last answered in it. */
  async *enter(sessionId: string): AsyncGenerator<ChatOutput, SessionTree> {
    const tree = await this.manager.open(sessionId);
    await this.#tree?.close();
    this.#tree = tree;
    this.listed.checkpoints = [];
    yield* this.#takeModelOf(await tree.refresh());
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
    if (this.questions === "asked") yield* this.#askParked(head, signal);
    const last = (await tree.toSession()).transcript.rows.at(-1)?.message;
    const isWhole = last?.role === "assistant" && (last.toolCalls ?? []).length === 0;
    // All that is left to do then is to put the end of the run on record.
    if (isWhole && head.openRuns.every(({ state }) => state === "started")) {
      yield notice("The last answer is whole; say what comes next.");
    }
    const modelFor = (name: string): Model => (this.#modelIsChosen ? this.#model : this.#init.models(name));
    const went = yield* this.turns.recover(this.manager, tree, await this.answererFor(tree), modelFor);
    if (!went) yield* this.#tellHowLeft(await tree.refresh());
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
    this.#modelIsChosen = true;
  }

  /** What answers the next turn of the session. */
  async answererFor(tree: SessionTree): Promise<Answerer> {
    const { system, workspace, questions, tools = [] } = this.#init;
    const { systemPrompt } = await tree.store.settings(tree.id, (await tree.refresh()).path);
    const prompt = system ?? systemPrompt ?? DEFAULT_PROMPT;
    return { model: this.#model, prompt, unasked: this.unasked, questions, workspace, tools };
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
    return { type: "session-opened", sessionId: id, model: modelName(this.#model) };
  }

  /** Asks the model that the session was last answered by, unless the user has chosen one. */
  async *#takeModelOf({ path }: SessionHead): AsyncGenerator<ChatOutput> {
    if (this.#modelIsChosen || path.model === null) return;
    const name = `${path.model.provider}/${path.model.modelId}`;
    try {
      this.#model = this.#init.models(name);
    } catch (error) {
      if (!(error instanceof SessionError)) throw error;
      yield notice(`${error.message} Until then ${modelName(this.#model)} answers, and not ${name}.`);
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
