import { lazy, Suspense } from "react";

const fetchMarkdown = () => import("./markdown");
const Markdown = lazy(() => fetchMarkdown().then((module) => ({ default: module.Markdown })));

/** Fetches the renderer before the first reply needs it; the page doesn't wait for it. */
export const prefetchMarkdown = () => void fetchMarkdown();

/** Markdown, or its plain text while the renderer is being fetched. */
export function LazyMarkdown(props: { text: string; isStreaming: boolean }) {
  return (
    <Suspense fallback={<p className="whitespace-pre-wrap leading-relaxed">{props.text}</p>}>
      <Markdown {...props} />
    </Suspense>
  );
}
