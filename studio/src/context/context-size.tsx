import type { ReactNode } from "react";
import type { ContextView } from "skein/client";
import { LongText } from "../markdown/long-text.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { percent, sharesByRole, tokensBeyondParts, wholeOf } from "./context-share.ts";

/** The size of a context and the share of each role; `limit` is the context window of the model. */
export function ContextSize({
  context,
  limit,
}: {
  readonly context: ContextView;
  readonly limit: number | null;
}): ReactNode {
  const shares = sharesByRole(context);
  const beyond = tokensBeyondParts(context);
  return (
    <section aria-label="Size of the context">
      <p className="context-total">
        <strong>{context.tokens.toLocaleString("en")} tokens</strong>
        <span className="soft">
          {" "}
          in {context.parts.length.toLocaleString("en")} {context.parts.length === 1 ? "message" : "messages"}
          {limit !== null && ` · ${percent(context.tokens / limit)} of the model's ${limit.toLocaleString("en")}`}
        </span>
      </p>
      {shares.length > 0 && (
        <div className="context-stack" aria-hidden="true">
          {shares.map(({ role, share }) => (
            <span key={role} className={`context-${role}`} style={{ flexGrow: share }} />
          ))}
          {beyond > 0 && <span style={{ flexGrow: beyond / wholeOf(context) }} />}
        </div>
      )}
      <ul className="context-roles small">
        {shares.map(({ role, count, tokens, share }) => (
          <li key={role}>
            <span className={`context-dot context-${role}`} aria-hidden="true" />
            {role} <span className="soft">×{count.toLocaleString("en")}</span> {tokens.toLocaleString("en")} tokens (
            {percent(share)})
          </li>
        ))}
        {beyond > 0 && (
          <li>
            instructions, tools and difference to the provider's count {beyond.toLocaleString("en")} tokens (
            {percent(beyond / wholeOf(context))})
          </li>
        )}
        {beyond < 0 && <li>the provider counted {(-beyond).toLocaleString("en")} tokens less</li>}
      </ul>
      {shares.length > 0 && (
        <p className="small soft">
          {beyond === 0
            ? "An estimate of the messages alone: the provider has not counted this context, and the instructions and the tools come in addition."
            : "The total starts from what the provider last counted, which includes the instructions and the tools; the messages are counted by the server."}
        </p>
      )}
    </section>
  );
}

/** The settings of the next request: model, thinking level, system prompt and variables. */
export function ContextSettings({ context }: { readonly context: ContextView }): ReactNode {
  const { model, thinkingLevel, systemPrompt, variables } = context;
  const names = Object.keys(variables);
  return (
    <section className="context-card" aria-label="Settings of the context">
      <h3>Settings</h3>
      <dl className="context-facts">
        <dt>Model</dt>
        <dd>{model === null ? <span className="soft">set by the agent</span> : visibleText(model)}</dd>
        <dt>Thinking</dt>
        <dd>{visibleText(thinkingLevel)}</dd>
      </dl>
      <details open={systemPrompt !== null && systemPrompt.length < 600}>
        <summary>
          System prompt{" "}
          <span className="soft small">
            {systemPrompt === null ? "set by the agent" : `about ${Math.ceil(systemPrompt.length / 4)} tokens`}
          </span>
        </summary>
        {systemPrompt === null ? (
          <p className="soft small">The session has none: the agent that runs next uses its own.</p>
        ) : (
          <LongText text={systemPrompt} />
        )}
      </details>
      <details open={names.length > 0 && names.length < 12}>
        <summary>
          Variables <span className="soft small">{names.length === 0 ? "none" : names.length}</span>
        </summary>
        {names.length === 0 ? (
          <p className="soft small">No variable is set on this path.</p>
        ) : (
          <dl className="context-facts">
            {Object.entries(variables).map(([name, value]) => [
              <dt key={name}>{visibleText(name)}</dt>,
              <dd key={`${name} is`}>
                <LongText text={typeof value === "string" ? value : JSON.stringify(value)} />
              </dd>,
            ])}
          </dl>
        )}
      </details>
    </section>
  );
}
