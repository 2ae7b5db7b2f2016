import { checkArgument, checkOptionsOf, checkStoreArgument, type KeysOf } from "../session/check-arguments.ts";
import { CacheFold, type CacheReport } from "../session/context/cache-report.ts";
import { SessionNotFoundError } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";
import { cacheRuleOf } from "./cache-rules.ts";

/** Options of `explainCache`. */
export interface ExplainCacheOptions {
  /** How long the provider was asked to keep its cache (default: what the log says, else what the provider documents: 5
   * minutes, 30 for gpt-5.6 and later ones, a day for gpt-5.5). */
  readonly lifetimeMs?: number;
  /** How many answers the report has, the latest ones (default 1,000). The sums are of all. */
  readonly limit?: number;
}

const KEYS: KeysOf<ExplainCacheOptions> = { lifetimeMs: true, limit: true };

/**
 * Explains what the answers of a session had from the prompt caches of their providers: for each one, the tokens that the
 * provider had cached of the request before, those that it read, and why it read less. Reads the log once.
 *
 * It compares what the log has of the two requests: setups, edits, compactions, branches and times. Of answers without a setup,
 * such as imported ones, it knows their usage, and a break without another cause is `unknown`.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`, or `INVALID_OPTION` for an option that is not an amount.
 */
export async function explainCache(
  store: SessionStore,
  sessionId: string,
  options: ExplainCacheOptions = {},
): Promise<CacheReport> {
  checkStoreArgument(store, "explainCache");
  checkOptionsOf(options, KEYS, "explainCache");
  for (const name of Object.keys(KEYS) as (keyof ExplainCacheOptions)[]) {
    const value = options[name];
    const isAmount = value === undefined || (Number.isSafeInteger(value) && value > 0);
    checkArgument(isAmount, value, "explainCache", `a whole number of 1 or more in ${name}`);
  }
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  const fold = new CacheFold(head.header, { ...options, rules: cacheRuleOf });
  for await (const entry of store.read(sessionId)) fold.add(entry);
  return fold.report();
}
