import { ExternalLink } from "lucide-react";
import { type ComponentProps, memo, useEffect, useState } from "react";
import {
  type ControlsConfig,
  defaultUrlTransform,
  type PluginConfig,
  Streamdown,
} from "streamdown";
import { withMathDelimiters } from "./math-delimiters";

const needsCode = (text: string) => text.includes("```") || text.includes("~~~");
const needsMath = (text: string) => text.includes("$$");

let plugins: PluginConfig = {};

/** The plugins that `text` needs, fetched when it first does and shared from then on. */
function usePlugins(text: string): PluginConfig {
  const [current, setCurrent] = useState(plugins);
  const code = needsCode(text) && !current.code;
  const math = needsMath(text) && !current.math;
  useEffect(() => {
    let isMounted = true;
    const add = (added: PluginConfig) => {
      plugins = { ...plugins, ...added };
      if (isMounted) setCurrent(plugins);
    };
    if (code) void import("./code-plugin").then(({ codePlugin }) => add({ code: codePlugin }));
    if (math) void import("./math-plugin").then(({ mathPlugin }) => add({ math: mathPlugin }));
    return () => {
      isMounted = false;
    };
  }, [code, math]);
  return current;
}

const OPENABLE = /^(https?:|mailto:)/i;
const INLINE_PICTURE = /^data:image\/(png|jpeg|gif|webp);/i;

function ProseLink({ href, children }: ComponentProps<"a">) {
  if (!href || !OPENABLE.test(href)) return <span>{children}</span>;
  return (
    <a
      href={href}
      target="_blank"
      rel="noopener noreferrer"
      className="font-medium text-primary underline underline-offset-4 [overflow-wrap:anywhere]"
    >
      {children}
    </a>
  );
}

/** A picture from elsewhere would tell its host who reads: it becomes a link. */
function ProsePicture({ src, alt }: ComponentProps<"img">) {
  const address = typeof src === "string" ? src : "";
  if (INLINE_PICTURE.test(address)) return <img src={address} alt={alt ?? ""} />;
  return (
    <ProseLink href={address}>
      {alt || address || "picture"}
      <ExternalLink className="ml-1 inline size-3.5" aria-label="(picture, not loaded)" />
    </ProseLink>
  );
}

const components = { a: ProseLink, img: ProsePicture };
const controls: ControlsConfig = {
  code: { copy: true, download: false },
  table: { copy: true, download: false, fullscreen: false },
  mermaid: false,
  image: false,
};

const allowed: typeof defaultUrlTransform = (url, key, node) =>
  INLINE_PICTURE.test(url) ? url : defaultUrlTransform(url, key, node);

type Props = { text: string; isStreaming: boolean };

/** A model's Markdown. HTML in it is shown as the text that it is: nothing of it is parsed. */
export const Markdown = memo(function Markdown({ text, isStreaming }: Props) {
  const source = withMathDelimiters(text);
  return (
    <Streamdown
      plugins={usePlugins(source)}
      isAnimating={isStreaming}
      parseIncompleteMarkdown={isStreaming}
      components={components}
      controls={controls}
      rehypePlugins={[]}
      urlTransform={allowed}
      linkSafety={{ enabled: false }}
      lineNumbers={false}
      codeBlockMaxHeight={0}
      tableMaxHeight={0}
      className="leading-relaxed [overflow-wrap:anywhere]"
    >
      {source}
    </Streamdown>
  );
});
