import { type ReactNode, useState } from "react";
import { AnalyticsPage } from "../analytics/analytics-page.tsx";
import { FleetPage } from "../fleet/fleet-page.tsx";
import { QuestionsLink } from "../questions/questions-link.tsx";
import { QuestionsPage } from "../questions/questions-page.tsx";
import { InboxContext, useReadInbox } from "../questions/use-inbox.ts";
import { connect, forgetToken, keptToken } from "../request/client.ts";
import { ClientContext } from "../request/use-client.ts";
import { SessionPage } from "../session/session-page.tsx";
import { SessionsPage } from "../sessions/sessions-page.tsx";
import { SessionsSidebar } from "../sessions/sessions-sidebar.tsx";
import { ConnectionBanner } from "./connection-banner.tsx";
import { Door } from "./door.tsx";
import { addressOf, goTo, type Place, usePlace } from "./place.ts";
import "./app.css";

/** The studio. */
export function App(): ReactNode {
  const [entered, setEntered] = useState(() => ({ client: connect(), times: 0 }));
  const enter = (): void => setEntered(({ times }) => ({ client: connect(), times: times + 1 }));
  const signOut = (): void => {
    forgetToken();
    goTo({ page: "sessions" });
    enter();
  };
  return (
    <ClientContext value={entered.client}>
      <div className="shell">
        {/* Whoever comes in sees nothing of what was shown to another. */}
        <Door key={entered.times} onToken={enter}>
          <Studio onSignOut={signOut} />
        </Door>
        <ConnectionBanner />
      </div>
    </ClientContext>
  );
}

function Studio({ onSignOut }: { readonly onSignOut: () => void }): ReactNode {
  const place = usePlace();
  const inbox = useReadInbox();
  return (
    <InboxContext value={inbox}>
      <div className={`app app-${place.page}`}>
        <button type="button" className="skip-link" onClick={focusMain}>
          Skip to the content
        </button>
        <aside className="app-side">
          <header className="app-name">
            <a href={addressOf({ page: "sessions" })}>Skein studio</a>
            {keptToken() !== null && (
              <button type="button" className="button button-plain small app-sign-out" onClick={onSignOut}>
                Sign out
              </button>
            )}
            <nav aria-label="Pages" className="app-pages small">
              <QuestionsLink here={place.page === "questions"} />
              <a href={addressOf({ page: "analytics" })} aria-current={place.page === "analytics" ? "page" : undefined}>
                Analytics
              </a>
              <a href={addressOf({ page: "fleet" })} aria-current={place.page === "fleet" ? "page" : undefined}>
                Fleet
              </a>
            </nav>
          </header>
          <SessionsSidebar selectedId={place.page === "session" ? place.id : null} />
        </aside>
        <main id="main" tabIndex={-1} className="app-main">
          <Page place={place} />
        </main>
      </div>
    </InboxContext>
  );
}

function Page({ place }: { readonly place: Place }): ReactNode {
  if (place.page === "analytics") return <AnalyticsPage />;
  if (place.page === "fleet") return <FleetPage />;
  if (place.page === "questions") return <QuestionsPage />;
  if (place.page === "sessions") return <SessionsPage />;
  return <SessionPage key={place.id} place={place} />;
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}
