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
/** The number of requests that one reservation covers, if their cost is at most this share of the rest of each limit. */
const REQUESTS_AHEAD = 8;
const SHARE_AHEAD = 1 / 1000;

const UNITS = ["totalTokens", "cost"] as const;

/** Whose spending is counted. */
export interface RunSpendingInit {
  readonly payer: Payer;
  /** Unique among the runs of the payer. */
  readonly run: string;
  /** The spending of a recovered run's earlier claims. */
  readonly before?: Partial<SpentAmounts>;
  readonly leaseMs?: number | undefined;
  /** Called when a level reaches its `warnAt`, once for each, and with `exceeded` when a limit ends the run. */
  readonly onWarning?: (level: BudgetLevel, exceeded: boolean) => void;
}

/** The parts of a request that determine its price. */
export interface PricedRequest {
  readonly model: Model | undefined;
  readonly inputTokens: number;
  readonly maxOutputTokens?: number | undefined;
}

/**
 * The spending of a run from the budgets of its user. Before a request it settles the amount spent and reserves the expected cost of the
 * request; far from every limit, it also reserves the cost of the next requests. A timer extends the reservation during a request, and
 * settles between requests.
 */
export class RunSpending {
  readonly #init: RunSpendingInit;
  /** The settled amount that this process knows of. */
  #settled: SpentAmounts;
  readonly #ttlMs: number;
  readonly #warned = new Set<string>();
  #spent: SpentAmounts;
  /** The reservation of the current request; null between requests. */
  #reserved: SpentAmounts | null = null;
  /** The amount that the ledger has reserved for the run: for spending since it last settled, and for its next requests; null if none. */
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
   * @throws {BudgetExceededError} before the model is called. @throws {SessionError} `PRICE_UNKNOWN` for a model without a price,
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

  /** Settles the amount spent, and ends the reservation. Never rejects, because the run has ended. */
  async end(): Promise<void> {
    if (this.#timer === null) return;
    this.drop();
    await this.#pay({ next: null, ends: true }).catch((error) => {
      process.emitWarning(`The spending of run ${this.#init.run} was not settled: ${describeThrown(error)}`);
    });
  }

  /** Stops without an error: another process has the run, or the ledger cannot be reached. The reservation ends by itself. */
  drop(): void {
    clearInterval(this.#timer ?? undefined);
    this.#timer = null;
  }

  async #tick(): Promise<void> {
    if (this.#reserved === null && this.#settled === this.#spent && this.#held === null) return;
    try {
      await this.#pay({ next: this.#reserved, underWay: true });
    } catch {
      // The next request tries again, and reports the error.
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

  /** Whether the reserved amount covers another request. Far from a limit, a run need not write to the ledger for each request. */
  #covers(next: SpentAmounts): boolean {
    const [held, spent, settled] = [this.#held, this.#spent, this.#settled];
    return held !== null && UNITS.every((unit) => spent[unit] - settled[unit] + next[unit] <= held[unit]);
  }

  /** The amount to reserve for a request and those after it. */
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
    if (!this.#init.payer.countsCost || model?.reportsCost !== false) return;
    throw new SessionError(
      "PRICE_UNKNOWN",
      `The user has a budget in cost, but ${model.provider}/${model.id} has no price; register one with registerPrices or SKEIN_PRICES, or limit totalTokens.`,
    );
  }
}

/** Wraps a model so that its requests are settled; returns the model itself without a payer. It does not stream. */
export function paidModel(model: Model, spending: RunSpending | null): Model {
  if (spending === null) return model;
  const { provider, id } = model;
  const complete: Model["complete"] = (request, options) =>
    spending.ask(priced(model, request), () => model.complete(request, options));
  return { provider, id, complete };
}

/** Runs work that calls models outside of a loop, such as a compaction; `spending` is null without a payer. */
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

/** The parts of a request that determine its price. */
export function priced(model: Model | undefined, { messages, maxOutputTokens }: ModelRequest): PricedRequest {
  const inputTokens = messages.reduce((sum, message) => sum + messageTokens(message), 0);
  return { model, inputTokens, ...defined({ maxOutputTokens }) };
}
