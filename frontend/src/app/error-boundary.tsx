import { Component, type ErrorInfo, type ReactNode } from "react";

type State = { error: Error | null };

/** The last net, around the whole app: plain HTML, since whatever it would use may be what broke. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error(error, info.componentStack);
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div role="alert" className="mx-auto max-w-xl space-y-4 px-6 py-20">
        <h1 className="font-semibold text-xl">The page has failed</h1>
        <p className="text-muted-foreground">
          The models and the answers under way go on. What the page says of the cause:
        </p>
        <pre className="overflow-auto whitespace-pre-wrap rounded-lg border bg-muted p-4 font-mono text-xs">
          {error.message}
        </pre>
        <div className="flex gap-2">
          <button
            type="button"
            className="h-10 rounded-md bg-primary px-4 font-medium text-primary-foreground text-sm"
            onClick={() => this.setState({ error: null })}
          >
            Try again
          </button>
          <button
            type="button"
            className="h-10 rounded-md border px-4 font-medium text-sm"
            onClick={() => window.location.reload()}
          >
            Reload the page
          </button>
        </div>
      </div>
    );
  }
}
