import { type ReactNode, useEffect, useRef } from "react";
import { ClientError, type SessionView } from "skein/client";
import { CheckpointsView } from "../checkpoints/checkpoints-view.tsx";
import { CompareView } from "../compare/compare-view.tsx";
import { ContextView } from "../context/context-view.tsx";
import { GroupView } from "../groups/group-view.tsx";
import { useHasGroup } from "../groups/use-has-group.ts";
import { LineageView } from "../lineage/lineage-view.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { SessionActions } from "../sessions/session-actions.tsx";
import { titleOf } from "../sessions/session-status.ts";
import { BackLink } from "../shell/back-link.tsx";
import { addressOf, type Route, SESSION_VIEWS, type SessionView as ViewName } from "../shell/route.ts";
import { useTitle } from "../shell/use-title.ts";
import { TalkView } from "../transcript/talk-view.tsx";
import { DeletedNote } from "./deleted-note.tsx";
import type { SessionProps } from "./session-props.ts";
import { useLiveSession } from "./use-live-session.ts";
import { VIEW_NAMES } from "./view-names.ts";
import "./session-page.css";

const VIEWS: Readonly<Record<ViewName, (props: SessionProps) => ReactNode>> = {
  talk: TalkView,
  context: ContextView,
  compare: CompareView,
  checkpoints: CheckpointsView,
  lineage: LineageView,
  group: GroupView,
};

/** The page of one session: its name, its actions, and the view of the URL. */
export function SessionPage({ route }: { readonly route: Extract<Route, { page: "session" }> }): ReactNode {
  const { id, view, options } = route;
  const live = useLiveSession(id);
  const View = VIEWS[view];
  useTitle(live.data === null ? null : titleOf(live.data));
  return (
    <>
      {live.data === null && <BackLink />}
      <RequestBoundary requested={live} what="the session">
        {(session) => (
          <div className="session-page">
            {isGone(live.error) && <DeletedNote id={id} onRestored={live.reload} />}
            <header className="session-header">
              <h1 className="session-title" title={titleOf(session)}>
                {visibleText(session.name ?? session.firstMessage ?? "New session")}
              </h1>
              <SessionActions session={session} onChange={live.reload} />
            </header>
            <ViewLinks session={session} view={view} />
            <div className="session-view">
              <View key={id} session={session} live={live} options={options} />
            </div>
          </div>
        )}
      </RequestBoundary>
    </>
  );
}

function ViewLinks({ session, view }: { readonly session: SessionView; readonly view: ViewName }): ReactNode {
  const { id } = session.header;
  const hasGroup = useHasGroup(session);
  const views = SESSION_VIEWS.filter((name) => name !== "group" || hasGroup || view === "group");
  const links = useRef<HTMLElement>(null);
  // In a narrow window, the links scroll; show the current one.
  useEffect(() => {
    const shown = links.current?.querySelector(`[data-view="${view}"]`);
    shown?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [view]);
  return (
    <nav ref={links} aria-label="Views of the session" className="session-views">
      {views.map((name) => (
        <a
          key={name}
          data-view={name}
          href={addressOf({ page: "session", id, view: name, options: {} })}
          aria-current={name === view ? "page" : undefined}
        >
          {VIEW_NAMES[name]}
        </a>
      ))}
    </nav>
  );
}

function isGone(error: Error | null): boolean {
  return error instanceof ClientError && error.status === 404;
}
