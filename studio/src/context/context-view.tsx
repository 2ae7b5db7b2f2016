import { type ReactNode, useState } from "react";
import type { ContextView as Context } from "skein/client";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import { useRevised } from "../request/use-revised.ts";
import type { SessionProps } from "../session/session-props.ts";
import { CachePanel } from "./cache-panel.tsx";
import { CompactForm, type Preview } from "./compact-form.tsx";
import { CompactionInForce } from "./compaction-in-force.tsx";
import { ContextParts } from "./context-parts.tsx";
import { droppedParts, tokensOfParts } from "./context-share.ts";
import { OmittedParts } from "./omitted-parts.tsx";
import { SetupParts } from "./setup-parts.tsx";
import { ContextSettings, ContextSize } from "./context-size.tsx";
import "./context.css";

/** The context of the next request. */
export function ContextView(props: SessionProps): ReactNode {
  const client = useClient();
  const { id } = props.session.header;
  const context = useRevised(id, props.live.revision, (signal) => client.sessions.context(id, { signal }));
  return (
    <div className="context-view">
      <h2 className="only-for-readers">What the model sees</h2>
      <RequestBoundary requested={context} what="the context">
        {(data) => <Loaded {...props} context={data} onChanged={context.reload} />}
      </RequestBoundary>
    </div>
  );
}

type LoadedProps = SessionProps & { readonly context: Context; readonly onChanged: () => void };

function Loaded({ session, live, context, onChanged }: LoadedProps): ReactNode {
  const client = useClient();
  const catalogue = useRequest("catalogue", (signal) => client.catalogue({ signal }));
  const [preview, setPreview] = useState<Preview | null>(null);
  const models = catalogue.data?.models ?? [];
  // A plan is only valid for the version it was made for: it does not cover later entries.
  const current = preview?.version === session.version ? preview : null;
  const limit = models.find((model) => model.id === context.model)?.contextWindow ?? null;
  const dropped = droppedParts(context, current?.plan ?? null);
  const changed = (): void => {
    setPreview(null);
    onChanged();
  };
  return (
    <div className="context-columns">
      <div className="context-main">
        <ContextSize context={context} limit={limit} />
        <SetupParts session={session} context={context} />
        <ContextParts sessionId={session.header.id} context={context} dropped={dropped} onChanged={changed} />
      </div>
      <div className="context-side">
        <ContextSettings context={context} />
        {context.compaction !== null && (
          <CompactionInForce
            key={context.compaction.entryId}
            sessionId={session.header.id}
            compaction={context.compaction}
            onChanged={changed}
          />
        )}
        <OmittedParts sessionId={session.header.id} omitted={context.omitted} onChanged={changed} />
        <CachePanel session={session} live={live} />
        <CompactForm
          session={session}
          models={models}
          preview={current}
          droppedTokens={dropped === 0 ? null : tokensOfParts({ parts: context.parts.slice(0, dropped) })}
          outdated={preview !== null && current === null}
          onPreview={setPreview}
          onChanged={changed}
        />
      </div>
    </div>
  );
}
