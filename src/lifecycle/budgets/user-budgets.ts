import { setTimeout as wait } from "node:timers/promises";
import { LruCache } from "../../internal/lru-cache.ts";
import { serialize } from "../../internal/session-queue.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { BudgetExceededError, SessionError } from "../../session/errors.ts";
import { checkName } from "../../session/id.ts";
import type { LedgerHour, LedgerTable, SpentAmounts } from "../../session/ledger.ts";
import type { BudgetLevel, Payer, Payment } from "../../session/payer.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionStore } from "../../session/store.ts";
import {
  hourOf,
  newPage,
  NOTHING,
  pageIn,
  reserve,
  reservedOn,
  settle,
  type SpendingPage,
  textOf,
  timeOfHour,
} from "./spending-page.ts";
import { type BudgetLimit, limitsOf, type UserBudget } from "./user-budget.ts";

const USERS_CACHED_MAX = 1000;
const TRIES_MAX = 100;
const BACKOFF_MS_MAX = 50;
const BASES_MAX = 64;

/** A page as this process last saw it. */
interface KnownPage {
  /** Null if nothing is stored. */
  readonly stamp: string | null;
  readonly page: SpendingPage;
  /** A cache of the amount spent before an hour, for past hours, whose amounts no longer change. */
  readonly bases: Map<number, SpentAmounts>;
}

/** Options of `UserBudgets`. */
export interface UserBudgetsInit {
  readonly store: SessionStore;
  readonly budgets: readonly UserBudget[];
  readonly clock: () => Date;
  /** The payer of a run that no user requested, in a session without an owner. */
  readonly userId: string;
}

/**
 * The budgets of users, on the ledger of a store.
 *
 * - A request is made as long as what was spent in the window and what others have reserved are below each limit.
 * - Any number of processes share a ledger. A page is replaced only if it is still the one that was planned on.
 * - What a run has spent is settled as a sum over all of its claims, so that nothing is counted twice after a crash.
 */
export class UserBudgets {
  readonly #store: SessionStore;
  readonly #limits: readonly BudgetLimit[];
  readonly #clock: () => Date;
  readonly #userId: string;
  readonly #pages = new LruCache<string, KnownPage>(USERS_CACHED_MAX);

  /** @throws {SessionError} `INVALID_OPTION` for budgets that cannot work, `NOT_SUPPORTED` for a store without a ledger. */
  constructor({ store, budgets, clock, userId }: UserBudgetsInit) {
    this.#limits = limitsOf(budgets);
    if (store.capabilities.ledger !== true)
      throw new SessionError(
        "NOT_SUPPORTED",
        "This store keeps no ledger, which budgets need; add one to its driver, or leave out budgets.",
      );
    this.#store = store;
    this.#clock = clock;
    this.#userId = userId;
  }

  /** How far a user has used up each limit, as the store has it now. */
  async levels(userId: string): Promise<readonly BudgetLevel[]> {
    checkName(userId, "a user");
    const known = await this.#load(userId);
    return this.#levelsOf(userId, known, known.page, this.#now());
  }

  /** The payer of runs in a session: the user who requested them, else its owner, else the user of the manager. */
  payerIn(head: SessionHead, by: string | undefined): Payer {
    return this.payerOf(by ?? head.header.userId ?? this.#userId);
  }

  /** The payer for the runs of a user. */
  payerOf(userId: string): Payer {
    const countsCost = this.#limits.some(({ unit }) => unit === "cost");
    // One at a time in this process, so that its runs do not compete for the page.
    return { countsCost, pay: (payment) => serialize(this, userId, () => this.#pay(userId, payment)) };
  }

  async #pay(userId: string, payment: Payment): Promise<readonly BudgetLevel[]> {
    let last: { readonly stamp: string; readonly reached: BudgetLevel | undefined } | null = null;
    for (let tries = 1; ; tries++) {
      const cached = this.#pages.get(userId);
      const known = cached ?? (await this.#load(userId));
      const nowMs = this.#now();
      if (last !== null && known.stamp === last.stamp) {
        // The reply to the last try was lost, but not the try.
        if (last.reached !== undefined) throw new BudgetExceededError(userId, last.reached);
        return this.#levelsOf(userId, known, known.page, nowMs);
      }
      const { page: settled, ended } = settle(known.page, payment, nowMs);
      const isAsked = payment.next !== null && !payment.underWay;
      const before = await this.#levelsOf(userId, known, settled, nowMs);
      const reached = isAsked ? before.find(({ limit, spent, reserved }) => spent + reserved >= limit) : undefined;
      if (reached !== undefined && cached !== undefined) {
        // Others may have settled less than they had reserved.
        this.#forget(userId);
        continue;
      }
      const page = reached === undefined ? reserve(settled, payment, nowMs) : settled;
      const stamp = uuidv7();
      if (await this.#ledger.replace(userId, known.stamp, { stamp, text: textOf(page) }, ended)) {
        this.#pages.set(userId, { ...known, stamp, page });
        if (reached !== undefined) throw new BudgetExceededError(userId, reached);
        return before;
      }
      last = { stamp, reached };
      this.#forget(userId);
      if (tries >= TRIES_MAX)
        throw new SessionError(
          "SESSION_BUSY",
          `The budget of the user was changed by others ${tries} times; try again.`,
        );
      if (tries > 1) await wait(Math.random() * Math.min(BACKOFF_MS_MAX, 2 ** tries));
    }
  }

  get #ledger(): LedgerTable {
    return this.#store.ledger;
  }

  #now(): number {
    return this.#clock().getTime();
  }

  #forget(userId: string): void {
    this.#pages.delete(userId);
  }

  async #load(userId: string): Promise<KnownPage> {
    const stored = await this.#ledger.read(userId);
    const page = stored === null ? newPage(this.#now()) : pageIn(stored.text);
    const known = { stamp: stored?.stamp ?? null, page, bases: new Map<number, SpentAmounts>() };
    if (stored !== null) this.#pages.set(userId, known);
    return known;
  }

  #levelsOf(userId: string, known: KnownPage, page: SpendingPage, nowMs: number): Promise<readonly BudgetLevel[]> {
    const reserved = reservedOn(page, nowMs);
    const hour = Math.max(page.hour, hourOf(nowMs));
    return Promise.all(
      this.#limits.map(async ({ window, hours, unit, limit, warnAt }): Promise<BudgetLevel> => {
        const spentSince = async (from: number): Promise<number> =>
          page[unit] - (await this.#spentBefore(userId, known, from))[unit];
        const first = hour - hours + 1;
        const spent = Math.max(0, await spentSince(first));
        const movesOn = spent < limit || limit === 0 ? null : await firstHour(first, hour + 1, spentSince, limit);
        const movesOnAt = movesOn === null ? null : timeOfHour(movesOn + hours - 1);
        return { window, unit, limit, spent, reserved: reserved[unit], warnAt, movesOnAt };
      }),
    );
  }

  /** The amount that the user had spent at the beginning of an hour. */
  async #spentBefore(userId: string, { page, bases, stamp }: KnownPage, hour: number): Promise<SpentAmounts> {
    if (page.hour < hour) return page;
    if (stamp === null) return NOTHING;
    const known = bases.get(hour);
    if (known !== undefined) return known;
    const found: LedgerHour | null = await this.#ledger.hourBefore(userId, hour);
    if (bases.size >= BASES_MAX) bases.clear();
    bases.set(hour, found ?? NOTHING);
    return found ?? NOTHING;
  }
}

/** The first hour in a range from which on less than the limit was spent. `spentSince` falls. */
async function firstHour(
  low: number,
  high: number,
  spentSince: (hour: number) => Promise<number>,
  limit: number,
): Promise<number> {
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((await spentSince(middle)) < limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
