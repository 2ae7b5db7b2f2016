import type { ReactNode } from "react";
import type { SessionsClient } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";

type Report = Awaited<ReturnType<SessionsClient["cache"]>>;
type Cause = NonNullable<Report["answers"][number]["cause"]>;

/** The latest answers that are shown. */
const ANSWERS = 20;

/** Shows how the answers of a session used the provider's prompt cache, and why some read less than they could. */
export function CachePanel({ session, live }: Pick<SessionProps, "session" | "live">): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const report = useRevised(`cache ${id}`, live.revision, (signal) =>
    client.sessions.cache(id, { limit: ANSWERS }, { signal }),
  );
  return (
    <section className="context-card" aria-label="Prompt cache">
      <h3>Prompt cache</h3>
      <RequestBoundary requested={report} what="the report on the cache">
        {(data) => <Loaded report={data} />}
      </RequestBoundary>
    </section>
  );
}

function Loaded({ report }: { readonly report: Report }): ReactNode {
  const { rewriteFactor, inputTokens, readTokens, writtenTokens, causes, answers } = report;
  if (rewriteFactor === null) return <p className="small soft">No answer has a usage yet.</p>;
  const share = inputTokens === 0 ? 0 : Math.round((readTokens / inputTokens) * 100);
  const broken = answers.filter(({ rewrittenTokens }) => rewrittenTokens > 0);
  return (
    <>
      <dl className="context-facts">
        <dt title="What was processed anew, divided by the tokens of the context: 1.00 if every token was processed once">
          Re-write factor
        </dt>
        <dd>{rewriteFactor.toFixed(2)}</dd>
        <dt>Read from a cache</dt>
        <dd>
          {readTokens.toLocaleString("en")} of {inputTokens.toLocaleString("en")} tokens ({share}&nbsp;%)
        </dd>
        <dt>Processed anew</dt>
        <dd>{writtenTokens.toLocaleString("en")} tokens</dd>
      </dl>
      {causes.some(({ tokens }) => tokens > 0) && (
        <>
          <p className="small soft">Of these, the cache could have had, by cause:</p>
          <ul className="context-roles small">
            {causes
              .filter(({ tokens }) => tokens > 0)
              .map(({ type, tokens }) => (
                <li key={type}>
                  {WORDS[type]}: {tokens.toLocaleString("en")} tokens
                </li>
              ))}
          </ul>
        </>
      )}
      {broken.length > 0 && (
        <details>
          <summary>Latest answers that read less</summary>
          <ul className="context-omitted small">
            {broken.map(({ entryId, timestamp, expectedTokens, readTokens: read, cause }) => (
              <li key={entryId}>
                {timestamp.slice(11, 19)}: {read.toLocaleString("en")} of {expectedTokens.toLocaleString("en")} tokens
                {cause !== null && `, ${textOf(cause)}`}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

const WORDS: Readonly<Record<Cause["type"], string>> = {
  first: "first request",
  lifetime: "lifetime of the cache",
  setup: "changed setup",
  edit: "edit",
  compaction: "compaction",
  merge: "merge",
  transform: "transform",
  branch: "other branch",
  model: "other model",
  provider: "the provider read less",
  unknown: "unknown",
};

function textOf(cause: Cause): string {
  if (cause.type === "setup")
    return `${cause.field} changed${cause.tool === undefined ? "" : `: ${visibleText(cause.tool)}`}`;
  if (cause.type === "lifetime") return `${Math.round(cause.gapMs / 60_000)} min after the request before`;
  return WORDS[cause.type];
}
