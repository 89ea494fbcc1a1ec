package summarize

import "regexp"

// The cues are the commonest ways to say a thing in the languages that agents
// are talked to in most. They decide what is kept first, never what is true: a
// missed sentence still has its place in the timeline.
var (
	decisionCue = regexp.MustCompile(`(?i)\b(?:decided|decision|we(?:'ll| will| should) (?:use|keep|go|do|drop|switch|stay)|let'?s (?:use|go with|keep|switch|do)|use \S+(?: \S+)? instead|going with|go with|switch(?:ed|ing)? to|we chose|chosen|settled on|agreed (?:to|on|that)|root cause|the fix (?:is|was)|turns out|confirmed)\b` +
		`|(?i)\b(?:decid(?:ido|imos)|vamos a usar|entschieden|wir (?:nehmen|verwenden|benutzen)|décidé|on (?:va utiliser|utilise)|deciso|решили|решено|будем использовать)\b` +
		`|решил|决定|決定|改用|采用|採用|选择了|就用|にします|にしました|を使います|することにし|기로 (?:했|결정)|결정했|사용하기로`)

	todoCue = regexp.MustCompile(`\b(?:TODOs?:|TODO\(|FIXME)|(?i)\b(?:to[- ]do:|next steps?|next,? (?:i|we)(?:'ll| will| need)|remaining|still (?:need|have|missing|to do)|not yet|left to do|follow[- ]?up|later we|pendiente|falta|noch offen|als nächstes|steht noch|à faire|reste à|da fare|осталось|нужно ещё|дальше)\b` +
		`|\[ \]|待办|待辦|接下来|接下來|下一步|还需要|還需要|残り|次に|まだ.{0,12}(?:ない|いません)|할 일|다음(?:으로| 단계)|남은`)

	constraintCue = regexp.MustCompile(`(?i)\b(?:must(?: not|n't)?|never|always|should not|shouldn'?t|make sure|only (?:use|if|when)|no more than|requirement|forbidden|prefer|avoid|under no circumstances|policy|nunca|siempre|no debes?|niemals|immer|darf nicht|muss|jamais|toujours|il faut|ne pas|sempre|mai|никогда|всегда|нельзя|обязательно)\b` +
		`|(?i)(?:^|please |[,;:] |and |but |so )(?:do not|don'?t)\b` +
		`|不要|必须|必須|禁止|不能|不得|一定要|务必|只能|しないで|してはいけ|必ず|なければ|반드시|하지 ?마|절대|항상`)

	errorCue = regexp.MustCompile(`(?i)\b(?:[a-z]*error|[a-z]*exception|traceback|fail(?:ed|ure|s)?|fatal|panic|denied|refused|not found|no such file|cannot|timed? ?out|unauthorized|forbidden|segfault|abort(?:ed)?|exit(?:ed with)? (?:code|status):? [1-9]\d*)\b` +
		`|错误|錯誤|失败|失敗|エラー|例外|오류|실패|ошибка|échec|fehlgeschlagen|fehler`)
)
