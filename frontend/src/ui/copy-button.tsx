import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { toast } from "sonner";
import { copyText } from "@/lib/clipboard";
import { IconButton } from "./icon-button";

const CONFIRMED_MILLISECONDS = 1_600;

type Props = {
  text: string | (() => string);
  /** "Copy", or what is copied where there are several. */
  label?: string;
  className?: string;
};

export function CopyButton({ text, label = "Copy", className = "" }: Props) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), CONFIRMED_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    if (await copyText(typeof text === "string" ? text : text())) setCopied(true);
    else toast.error("The browser did not allow copying. Select the text and copy it by hand.");
  };
  return (
    <IconButton
      label={isCopied ? "Copied" : label}
      size="icon-sm"
      className={className}
      onClick={() => void copy()}
    >
      {isCopied ? <Check aria-hidden /> : <Copy aria-hidden />}
    </IconButton>
  );
}
