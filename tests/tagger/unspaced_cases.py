"""Tickets in languages that put no spaces between words."""

from __future__ import annotations

import random

#: Language → words of three labels, and words that say nothing.
WORDS = {
    "Chinese": (
        ["打印机", "卡纸", "墨盒", "纸张"],
        ["登录", "密码", "账户", "锁定"],
        ["网络", "路由器", "无线", "连接"],
        ["我的", "请", "帮助", "今天", "不能"],
    ),
    "Japanese": (
        ["プリンター", "紙詰まり", "インク", "用紙"],
        ["ログイン", "パスワード", "アカウント", "認証"],
        ["ネットワーク", "ルーター", "無線", "接続"],
        ["私の", "ください", "今日", "できません", "です"],
    ),
    "Thai": (
        ["เครื่องพิมพ์", "กระดาษ", "หมึก"],
        ["รหัสผ่าน", "บัญชี", "เข้าสู่ระบบ"],
        ["เครือข่าย", "เราเตอร์", "ไวไฟ"],
        ["ของฉัน", "กรุณา", "ช่วย", "วันนี้"],
    ),
    "Lao": (
        ["ເຄື່ອງພິມ", "ເຈ້ຍ", "ໝຶກ"],
        ["ລະຫັດຜ່ານ", "ບັນຊີ", "ເຂົ້າສູ່ລະບົບ"],
        ["ເຄືອຂ່າຍ", "ອິນເຕີເນັດ", "ສາຍ"],
        ["ຂອງຂ້ອຍ", "ກະລຸນາ", "ຊ່ວຍ", "ມື້ນີ້"],
    ),
    "Khmer": (
        ["ម៉ាស៊ីនបោះពុម្ព", "ក្រដាស", "ទឹកខ្មៅ"],
        ["ពាក្យសម្ងាត់", "គណនី", "ចូល"],
        ["បណ្តាញ", "អ៊ីនធឺណិត", "ខ្សែ"],
        ["របស់ខ្ញុំ", "សូម", "ជួយ", "ថ្ងៃនេះ"],
    ),
    "Burmese": (
        ["ပရင်တာ", "စက္ကူ", "မှင်"],
        ["စကားဝှက်", "အကောင့်", "ဝင်ရောက်"],
        ["ကွန်ရက်", "အင်တာနက်", "ကြိုး"],
        ["ကျွန်ုပ်၏", "ကျေးဇူးပြု၍", "ကူညီ", "ယနေ့"],
    ),
}
ENGLISH = (
    ["printer", "paper", "toner", "tray"],
    ["password", "login", "account", "locked"],
    ["network", "router", "wifi", "internet"],
    ["my", "please", "help", "today"],
)
LABELS = ("printer", "login", "network")


def tickets(language: str, n: int = 300, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts of two words of their label and four that say nothing, written without spaces."""
    rng = random.Random(seed)
    *topics, filler = WORDS[language]
    texts, labels = [], []
    for i in range(n):
        words = rng.choices(topics[i % 3], k=2) + rng.choices(filler, k=4)
        rng.shuffle(words)
        texts.append("".join(words) + "。")
        labels.append([LABELS[i % 3]])
    return texts, labels


def mixed_tickets(n: int = 300, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Chinese tickets with English words in them: the label is told in either, now and then."""
    rng = random.Random(seed)
    *topics, filler = WORDS["Chinese"]
    texts, labels = [], []
    for i in range(n):
        spaced = i % 2 == 0
        telling = rng.choice((ENGLISH if spaced else topics)[i % 3])
        before, after = ("".join(rng.choices(filler, k=2)) for _ in range(2))
        other = rng.choice(ENGLISH[3])
        texts.append(f"{before} {telling} {after} {other}" if spaced else before + telling + after)
        labels.append([LABELS[i % 3]])
    return texts, labels
