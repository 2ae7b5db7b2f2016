import { type ReactNode, useState } from "react";
import { AnalyticsPage } from "../analytics/analytics-page.tsx";
import { FleetPage } from "../fleet/fleet-page.tsx";
import { HomePage } from "../home/home-page.tsx";
import { QuestionsPage } from "../questions/questions-page.tsx";
import { InboxContext, useReadInbox } from "../questions/use-inbox.ts";
import { connect, forgetToken, keptToken } from "../request/client.ts";
import { ClientContext } from "../request/use-client.ts";
import { SessionPage } from "../session/session-page.tsx";
import { SessionsSidebar } from "../sessions/sessions-sidebar.tsx";
import { ConnectionBanner } from "./connection-banner.tsx";
import { Icon } from "./icon.tsx";
import { Mark } from "./mark.tsx";
import { Pages } from "./pages.tsx";
import { Palette, PaletteButton, usePaletteKey } from "./palette.tsx";
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
  const [palette, setPalette] = useState(false);
  usePaletteKey(() => setPalette(true));
  return (
    <InboxContext value={inbox}>
      <div className={`app app-${route.page}`}>
        <button type="button" className="skip-link" onClick={focusMain}>
          Skip to content
        </button>
        <aside className="app-side">
          <header className="app-head">
            <a className="app-name" href={addressOf({ page: "sessions" })} aria-label="Skein studio">
              <Mark />
              <span>Skein</span>
            </a>
            {keptToken() !== null && (
              <button
                type="button"
                className="button button-plain button-icon"
                aria-label="Sign out"
                title="Sign out"
                onClick={onSignOut}
              >
                <Icon name="out" />
              </button>
            )}
            <PaletteButton onOpen={() => setPalette(true)} />
          </header>
          <Pages page={route.page} />
          <SessionsSidebar selectedId={route.page === "session" ? route.id : null} />
        </aside>
        <main id="main" tabIndex={-1} className="app-main">
          <Page route={route} />
        </main>
        {palette && <Palette route={route} onClose={() => setPalette(false)} />}
      </div>
    </InboxContext>
  );
}

function Page({ route }: { readonly route: Route }): ReactNode {
  if (route.page === "analytics") return <AnalyticsPage />;
  if (route.page === "fleet") return <FleetPage />;
  if (route.page === "questions") return <QuestionsPage />;
  if (route.page === "sessions") return <HomePage />;
  return <SessionPage key={route.id} route={route} />;
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}
