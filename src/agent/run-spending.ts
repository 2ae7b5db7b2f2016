import { defined } from "../internal/defined.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { messageTokens } from "../session/context/tokens.ts";
import { BudgetExceededError, SessionError } from "../session/errors.ts";
import type { SpentAmounts } from "../session/ledger.ts";
import type { BudgetLevel, Payer } from "../session/payer.ts";
import type { Usage } from "../session/usage.ts";
import { describeThrown } from "./describe-thrown.ts";
import type { Model, ModelRequest } from "./model/model.ts";

const OUTPUT_TOKENS_DEFAULT = 1000;
/** How long a reservation lasts, like the lease of a run, and how often it is extended in that time. */
const TTL_MS_DEFAULT = 30_000;
const EXTENSIONS = 3;
/** How many requests one reservation covers, as long as they are at most this share of what is left of each limit. */
const REQUESTS_AHEAD = 8;
const SHARE_AHEAD = 1 / 1000;

const UNITS = ["totalTokens", "cost"] as const;

/** Whose spending is counted. */
export interface RunSpendingInit {
  readonly payer: Payer;
  /** Unique among the runs of the payer. */
  readonly run: string;
  /** What the run had spent before, if it was recovered. */
  readonly before?: Partial<SpentAmounts>;
  readonly leaseMs?: number | undefined;
  /** Called when a level reaches its `warnAt`, once for each, and with `exceeded` when a limit ends the run. */
  readonly onWarning?: (level: BudgetLevel, exceeded: boolean) => void;
}

/** A request, as far as its price depends on it. */
export interface PricedRequest {
  readonly model: Model | undefined;
  readonly inputTokens: number;
  readonly maxOutputTokens?: number | undefined;
}

/**
 * What a run spends of the budgets of its user. Before a request it settles what was spent until then and reserves what the
 * request will probably spend; far from every limit, also what the next ones will. A timer extends the reservation while a
 * request is under way, and settles between requests.
 */
export class RunSpending {
  readonly #init: RunSpendingInit;
  /** What was settled, as far as is known here. */
  #settled: SpentAmounts;
  readonly #ttlMs: number;
  readonly #warned = new Set<string>();
  #spent: SpentAmounts;
  /** What the request under way has reserved; null between requests. */
  #reserved: SpentAmounts | null = null;
  /** What the ledger has reserved for the run, for what it has spent since it settled and for its next requests; null if nothing. */
  #held: SpentAmounts | null = null;
  #levels: readonly BudgetLevel[] = [];
  #lastOutput = OUTPUT_TOKENS_DEFAULT;
  #costPerToken = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(init: RunSpendingInit) {
    this.#init = init;
    this.#settled = { totalTokens: 0, cost: 0, ...init.before };
    this.#spent = this.#settled;
    this.#ttlMs = init.leaseMs ?? TTL_MS_DEFAULT;
  }

  /**
   * Asks a model once the budgets allow it.
   *
   * @throws {BudgetExceededError} before anything is asked. @throws {SessionError} `PRICE_UNKNOWN` for a model without a price,
   * if a budget is in cost.
   */
  async ask<T extends { readonly usage?: Usage; readonly cost?: number }>(
    request: PricedRequest,
    ask: () => Promise<T>,
  ): Promise<T> {
    this.#checkPriced(request.model);
    const next = this.#estimate(request);
    if (!this.#covers(next)) {
      this.#levels = await this.#pay({ next: this.#ahead(next) });
      this.#warn(this.#levels);
    }
    this.#reserved = next;
    this.#timer ??= setInterval(() => void this.#tick(), this.#ttlMs / EXTENSIONS).unref();
    try {
      const reply = await ask();
      this.#count(reply);
      return reply;
    } finally {
      this.#reserved = null;
    }
  }

  /** Settles what was spent, and ends the reservation. Never rejects, as the run has ended. */
  async end(): Promise<void> {
    if (this.#timer === null) return;
    this.drop();
    await this.#pay({ next: null, ends: true }).catch((error) => {
      process.emitWarning(`The spending of run ${this.#init.run} was not settled: ${describeThrown(error)}`);
    });
  }

  /** Stops without a word: another process has the run, or nobody can reach the ledger. The reservation ends by itself. */
  drop(): void {
    clearInterval(this.#timer ?? undefined);
    this.#timer = null;
  }

  async #tick(): Promise<void> {
    if (this.#reserved === null && this.#settled === this.#spent && this.#held === null) return;
    try {
      await this.#pay({ next: this.#reserved, underWay: true });
    } catch {
      // The next request tries again, and reports it.
    }
  }

  async #pay(
    payment: { next: SpentAmounts | null } & Partial<Record<"underWay" | "ends", boolean>>,
  ): Promise<readonly BudgetLevel[]> {
    const { payer, run } = this.#init;
    const [before, spent, ttlMs] = [this.#settled, this.#spent, this.#ttlMs];
    try {
      const levels = await payer.pay({ run, before, spent, ttlMs, underWay: false, ends: false, ...payment });
      this.#settled = spent;
      this.#held = payment.next;
      return levels;
    } catch (error) {
      if (!(error instanceof BudgetExceededError)) throw error;
      this.#settled = spent;
      this.#held = null;
      this.#init.onWarning?.(error.level, true);
      throw error;
    }
  }

  /** Whether what is reserved is enough for a request, too: far from a limit, a run need not write to the ledger for each. */
  #covers(next: SpentAmounts): boolean {
    const [held, spent, settled] = [this.#held, this.#spent, this.#settled];
    return held !== null && UNITS.every((unit) => spent[unit] - settled[unit] + next[unit] <= held[unit]);
  }

  /** What to reserve for a request and those after it. */
  #ahead(next: SpentAmounts): SpentAmounts {
    const left = this.#levels.map(({ unit, limit, spent, reserved }) => (limit - spent - reserved) / next[unit]);
    const requests = left.length === 0 ? 1 : Math.min(REQUESTS_AHEAD, Math.floor(Math.min(...left) * SHARE_AHEAD));
    const times = Math.max(1, requests);
    return { totalTokens: next.totalTokens * times, cost: next.cost * times };
  }

  #warn(levels: readonly BudgetLevel[]): void {
    for (const level of levels) {
      const { window, unit, warnAt, limit, spent } = level;
      const name = `${window} ${unit}`;
      if (warnAt === null || spent < warnAt * limit || this.#warned.has(name)) continue;
      this.#warned.add(name);
      this.#init.onWarning?.(level, false);
    }
  }

  #estimate({ model, inputTokens, maxOutputTokens }: PricedRequest): SpentAmounts {
    const outputTokens = Math.min(this.#lastOutput, maxOutputTokens ?? Number.POSITIVE_INFINITY);
    const totalTokens = Math.ceil(inputTokens + outputTokens);
    const cost = model?.costOf?.({ inputTokens, outputTokens, totalTokens }) ?? totalTokens * this.#costPerToken;
    return { totalTokens, cost };
  }

  #count({ usage, cost = 0 }: { readonly usage?: Usage; readonly cost?: number }): void {
    const { totalTokens = 0, outputTokens = 0 } = usage ?? {};
    this.#spent = { totalTokens: this.#spent.totalTokens + totalTokens, cost: this.#spent.cost + cost };
    if (outputTokens > 0) this.#lastOutput = outputTokens;
    if (totalTokens > 0) this.#costPerToken = cost / totalTokens;
  }

  #checkPriced(model: Model | undefined): void {
    if (!this.#init.payer.countsCost || model?.tellsCost !== false) return;
    throw new SessionError(
      "PRICE_UNKNOWN",
      `The user has a budget in cost, but ${model.provider}/${model.id} has no price; register one with registerPrices or SKEIN_PRICES, or limit totalTokens.`,
    );
  }
}

/** A model whose requests are paid for; the same model if nobody pays. It does not stream. */
export function paidModel(model: Model, spending: RunSpending | null): Model {
  if (spending === null) return model;
  const { provider, id } = model;
  const complete: Model["complete"] = (request, options) =>
    spending.ask(priced(model, request), () => model.complete(request, options));
  return { provider, id, complete };
}

/** Does work that asks models outside of a loop, such as a compaction; null if nobody pays for it. */
export async function withPayer<T>(
  payer: Payer | null,
  work: (spending: RunSpending | null) => Promise<T>,
): Promise<T> {
  if (payer === null) return work(null);
  const spending = new RunSpending({ payer, run: uuidv7() });
  try {
    return await work(spending);
  } finally {
    await spending.end();
  }
}

/** A request as its price depends on it. */
export function priced(model: Model | undefined, { messages, maxOutputTokens }: ModelRequest): PricedRequest {
  const inputTokens = messages.reduce((sum, message) => sum + messageTokens(message), 0);
  return { model, inputTokens, ...defined({ maxOutputTokens }) };
}
