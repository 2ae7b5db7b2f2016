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
import { SignIn } from "./sign-in.tsx";
import { addressOf, goTo, type Route, useRoute } from "./route.ts";
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
        {/* Remounts everything for a new user, so that nothing of the previous user is shown. */}
        <SignIn key={entered.times} onToken={enter}>
          <Studio onSignOut={signOut} />
        </SignIn>
        <ConnectionBanner />
      </div>
    </ClientContext>
  );
}

function Studio({ onSignOut }: { readonly onSignOut: () => void }): ReactNode {
  const route = useRoute();
  const inbox = useReadInbox();
  return (
    <InboxContext value={inbox}>
      <div className={`app app-${route.page}`}>
        <button type="button" className="skip-link" onClick={focusMain}>
          Skip to content
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
              <QuestionsLink here={route.page === "questions"} />
              <a href={addressOf({ page: "analytics" })} aria-current={route.page === "analytics" ? "page" : undefined}>
                Analytics
              </a>
              <a href={addressOf({ page: "fleet" })} aria-current={route.page === "fleet" ? "page" : undefined}>
                Fleet
              </a>
            </nav>
          </header>
          <SessionsSidebar selectedId={route.page === "session" ? route.id : null} />
        </aside>
        <main id="main" tabIndex={-1} className="app-main">
          <Page route={route} />
        </main>
      </div>
    </InboxContext>
  );
}

function Page({ route }: { readonly route: Route }): ReactNode {
  if (route.page === "analytics") return <AnalyticsPage />;
  if (route.page === "fleet") return <FleetPage />;
  if (route.page === "questions") return <QuestionsPage />;
  if (route.page === "sessions") return <SessionsPage />;
  return <SessionPage key={route.id} route={route} />;
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}
