import { lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { FleetPage } from "../fleet/fleet-page.tsx";
import { HomePage } from "../home/home-page.tsx";
import { QuestionsPage } from "../questions/questions-page.tsx";
import { InboxContext, useReadInbox } from "../questions/use-inbox.ts";
import { connect, forgetToken, keptToken } from "../request/client.ts";
import { ClientContext } from "../request/use-client.ts";
import { SessionsSidebar } from "../sessions/sessions-sidebar.tsx";
import { ConnectionBanner } from "./connection-banner.tsx";
import { Icon } from "./icon.tsx";
import { Mark } from "./mark.tsx";
import { Pages } from "./pages.tsx";
import { Palette, PaletteButton, usePaletteKey } from "./palette.tsx";
import { SignIn } from "./sign-in.tsx";
import { addressOf, goTo, parseRoute, type Route, useRoute } from "./route.ts";
import "./app.css";

// The first page needs neither the transcript with Markdown and trees nor the charts, which are most of the program.
const loadSession = () => import("../session/session-page.tsx");
const loadAnalytics = () => import("../analytics/analytics-page.tsx");
const SessionPage = lazy(() => loadSession().then(({ SessionPage: page }) => ({ default: page }), orNotLoaded));
const AnalyticsPage = lazy(() => loadAnalytics().then(({ AnalyticsPage: page }) => ({ default: page }), orNotLoaded));
// A link to a session does not wait for the user to be known.
if (parseRoute(window.location.hash).page === "session") void loadSession().catch(() => {});

/** How long after the first page the rest of the program is loaded, so that opening a session does not wait for it. */
const REST_MS = 1000;

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
  useEffect(() => {
    const timer = setTimeout(() => void Promise.allSettled([loadSession(), loadAnalytics()]), REST_MS);
    return () => clearTimeout(timer);
  }, []);
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
          <Suspense fallback={<output className="loading">Loading the page …</output>}>
            <Page route={route} />
          </Suspense>
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

/** In place of a page whose program could not be loaded, for example after the server was upgraded. */
function orNotLoaded(): { readonly default: () => ReactNode } {
  return { default: NotLoaded };
}

function NotLoaded(): ReactNode {
  return (
    <div role="alert" className="problem">
      <p>This page could not be loaded. The server may be unreachable, or have a new version.</p>
      <button type="button" className="button" onClick={() => window.location.reload()}>
        Load it again
      </button>
    </div>
  );
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}
