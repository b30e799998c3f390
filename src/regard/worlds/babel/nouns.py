"""Nouns of babel, one per line: English | French | German | Persian.

English lists an irregular plural after a slash, French the gender and an irregular plural, German the gender, singular,
plural and an irregular genitive; `w` marks weak nouns (den Jungen).
"""

from regard.worlds.babel.lexicon import Noun, noun

_TABLE = {
    "person": """
man/men | m homme | m Mann/Männer/Mannes | مرد
woman/women | f femme | f Frau/Frauen | زن
child/children | m enfant | n Kind/Kinder/Kindes | بچه
girl | f fille | n Mädchen/Mädchen | دختر
teacher | m professeur | m Lehrer/Lehrer | معلم
doctor | m médecin | m Arzt/Ärzte/Arztes | پزشک
student | m étudiant | w Student/Studenten | دانشجو
neighbour | m voisin | w Nachbar/Nachbarn | همسایه
friend | m ami | m Freund/Freunde/Freundes | دوست
mother | f mère | f Mutter/Mütter | مادر
father | m père | m Vater/Väter | پدر
sister | f sœur | f Schwester/Schwestern | خواهر
brother | m frère | m Bruder/Brüder | برادر
writer | m écrivain | m Schriftsteller/Schriftsteller | نویسنده
painter | m peintre | m Maler/Maler | نقاش
singer | m chanteur | m Sänger/Sänger | خواننده
actor | m acteur | m Schauspieler/Schauspieler | بازیگر
cook | m cuisinier | m Koch/Köche/Kochs | آشپز
baker | m boulanger | m Bäcker/Bäcker | نانوا
farmer | m agriculteur | w Bauer/Bauern | کشاورز
worker | m ouvrier | m Arbeiter/Arbeiter | کارگر
engineer | m ingénieur | m Ingenieur/Ingenieure | مهندس
nurse | f infirmière | f Krankenschwester/Krankenschwestern | پرستار
lawyer | m avocat | m Anwalt/Anwälte | وکیل
judge | m juge | m Richter/Richter | قاضی
journalist | m journaliste | w Journalist/Journalisten | روزنامه‌نگار
president | m président | w Präsident/Präsidenten | رئیس‌جمهور
minister | m ministre | m Minister/Minister | وزیر
director | m directeur | m Direktor/Direktoren | مدیر
colleague | m collègue | w Kollege/Kollegen | همکار
tourist | m touriste | w Tourist/Touristen | گردشگر
soldier | m soldat | w Soldat/Soldaten | سرباز
policeman/policemen | m policier | w Polizist/Polizisten | پلیس
scientist | m scientifique | m Wissenschaftler/Wissenschaftler | دانشمند
poet | m poète | m Dichter/Dichter | شاعر
translator | m traducteur | m Übersetzer/Übersetzer | مترجم
king | m roi | m König/Könige | پادشاه
queen | f reine | f Königin/Königinnen | ملکه
guest | m invité | m Gast/Gäste/Gastes | مهمان
pupil | m élève | m Schüler/Schüler | دانش‌آموز
gardener | m jardinier | m Gärtner/Gärtner | باغبان
driver | m chauffeur | m Fahrer/Fahrer | راننده
pilot | m pilote | w Pilot/Piloten | خلبان
musician | m musicien | m Musiker/Musiker | نوازنده
""",
    "animal": """
dog | m chien | m Hund/Hunde/Hundes | سگ
cat | m chat | f Katze/Katzen | گربه
horse | m cheval/chevaux | n Pferd/Pferde/Pferdes | اسب
bird | m oiseau | m Vogel/Vögel | پرنده
cow | f vache | f Kuh/Kühe | گاو
mouse/mice | f souris | f Maus/Mäuse | موش
rabbit | m lapin | n Kaninchen/Kaninchen | خرگوش
lion | m lion | w Löwe/Löwen | شیر
elephant | m éléphant | w Elefant/Elefanten | فیل
bear | m ours | w Bär/Bären | خرس
fox | m renard | m Fuchs/Füchse/Fuchses | روباه
wolf/wolves | m loup | m Wolf/Wölfe/Wolfes | گرگ
monkey | m singe | w Affe/Affen | میمون
goat | f chèvre | f Ziege/Ziegen | بز
""",
    "food": """
apple | f pomme | m Apfel/Äpfel | سیب
orange | f orange | f Orange/Orangen | پرتقال
cake | m gâteau | m Kuchen/Kuchen | کیک
soup | f soupe | f Suppe/Suppen | سوپ
egg | m œuf | n Ei/Eier | تخم‌مرغ
salad | f salade | m Salat/Salate | سالاد
tomato/tomatoes | f tomate | f Tomate/Tomaten | گوجه‌فرنگی
pear | f poire | f Birne/Birnen | گلابی
banana | f banane | f Banane/Bananen | موز
carrot | f carotte | f Karotte/Karotten | هویج
onion | m oignon | f Zwiebel/Zwiebeln | پیاز
lemon | m citron | f Zitrone/Zitronen | لیمو
melon | m melon | f Melone/Melonen | خربزه
sausage | f saucisse | f Wurst/Würste | سوسیس
cherry | f cerise | f Kirsche/Kirschen | گیلاس
cucumber | m concombre | f Gurke/Gurken | خیار
""",
    "thing": """
table | f table | m Tisch/Tische | میز
chair | f chaise | m Stuhl/Stühle | صندلی
car | f voiture | n Auto/Autos | ماشین
bicycle | m vélo | n Fahrrad/Fahrräder | دوچرخه
cup | f tasse | f Tasse/Tassen | فنجان
glass | m verre | n Glas/Gläser | لیوان
plate | f assiette | m Teller/Teller | بشقاب
bag | m sac | f Tasche/Taschen | کیف
suitcase | f valise | m Koffer/Koffer | چمدان
key | f clé | m Schlüssel/Schlüssel | کلید
coat | m manteau | m Mantel/Mäntel | پالتو
shirt | f chemise | n Hemd/Hemden | پیراهن
hat | m chapeau | m Hut/Hüte | کلاه
carpet | m tapis | m Teppich/Teppiche | فرش
picture | m tableau | n Bild/Bilder | تابلو
ball | m ballon | m Ball/Bälle | توپ
knife/knives | m couteau | n Messer/Messer | چاقو
box | f boîte | f Schachtel/Schachteln | جعبه
umbrella | m parapluie | m Regenschirm/Regenschirme | چتر
mirror | m miroir | m Spiegel/Spiegel | آینه
bottle | f bouteille | f Flasche/Flaschen | بطری
basket | m panier | m Korb/Körbe | سبد
boat | m bateau | n Boot/Boote | قایق
flower | f fleur | f Blume/Blumen | گل
pen | m stylo | m Stift/Stifte | خودکار
ring | f bague | m Ring/Ringe | انگشتر
guitar | f guitare | f Gitarre/Gitarren | گیتار
blanket | f couverture | f Decke/Decken | پتو
""",
    "device": """
lamp | f lampe | f Lampe/Lampen | چراغ
computer | m ordinateur | m Computer/Computer | رایانه
television | m téléviseur | m Fernseher/Fernseher | تلویزیون
radio | f radio | n Radio/Radios | رادیو
machine | f machine | f Maschine/Maschinen | دستگاه
camera | f caméra | f Kamera/Kameras | دوربین
""",
    "text": """
book | m livre | n Buch/Bücher/Buches | کتاب
letter | f lettre | m Brief/Briefe | نامه
article | m article | m Artikel/Artikel | مقاله
poem | m poème | n Gedicht/Gedichte | شعر
story/stories | f histoire | f Geschichte/Geschichten | داستان
report | m rapport | m Bericht/Berichte | گزارش
text | m texte | m Text/Texte | متن
message | m message | f Nachricht/Nachrichten | پیام
novel | m roman | m Roman/Romane | رمان
contract | m contrat | m Vertrag/Verträge | قرارداد
sentence | f phrase | m Satz/Sätze | جمله
speech | m discours | f Rede/Reden | سخنرانی
document | m document | n Dokument/Dokumente | سند
""",
    "place": """
house | f maison | n Haus/Häuser/Hauses | خانه
school | f école | f Schule/Schulen | مدرسه
garden | m jardin | m Garten/Gärten | باغ
city/cities | f ville | f Stadt/Städte | شهر
village | m village | n Dorf/Dörfer/Dorfes | روستا
hospital | m hôpital | n Krankenhaus/Krankenhäuser/Krankenhauses | بیمارستان
hotel | m hôtel | n Hotel/Hotels | هتل
museum | m musée | n Museum/Museen | موزه
library/libraries | f bibliothèque | f Bibliothek/Bibliotheken | کتابخانه
university/universities | f université | f Universität/Universitäten | دانشگاه
restaurant | m restaurant | n Restaurant/Restaurants | رستوران
church | f église | f Kirche/Kirchen | کلیسا
factory/factories | f usine | f Fabrik/Fabriken | کارخانه
shop | m magasin | m Laden/Läden | مغازه
park | m parc | m Park/Parks | پارک
theatre | m théâtre | n Theater/Theater | تئاتر
cinema | m cinéma | n Kino/Kinos | سینما
kitchen | f cuisine | f Küche/Küchen | آشپزخانه
palace | m palais | m Palast/Paläste/Palastes | کاخ
tower | f tour | m Turm/Türme/Turmes | برج
prison | f prison | n Gefängnis/Gefängnisse/Gefängnisses | زندان
castle | m château | n Schloss/Schlösser/Schlosses | قلعه
office | m bureau | n Büro/Büros | دفتر
bakery/bakeries | f boulangerie | f Bäckerei/Bäckereien | نانوایی
""",
    "institution": """
area | f zone | n Gebiet/Gebiete | منطقه
commission | f commission | f Kommission/Kommissionen | کمیسیون
council | m conseil | m Rat/Räte/Rates | شورا
market | m marché | m Markt/Märkte/Marktes | بازار
organization | f organisation | f Organisation/Organisationen | سازمان
crisis/crises | f crise | f Krise/Krisen | بحران
program | m programme | n Programm/Programme | برنامه
project | m projet | n Projekt/Projekte | پروژه
system | m système | n System/Systeme | نظام
conference | f conférence | f Konferenz/Konferenzen | کنفرانس
institution | f institution | f Institution/Institutionen | نهاد
union | f union | f Union/Unionen | اتحادیه
group | m groupe | f Gruppe/Gruppen | گروه
committee | m comité | m Ausschuss/Ausschüsse/Ausschusses | کمیته
network | m réseau | n Netzwerk/Netzwerke | شبکه
plan | m plan | m Plan/Pläne/Planes | طرح
strategy/strategies | f stratégie | f Strategie/Strategien | راهبرد
problem | m problème | n Problem/Probleme | مشکل
law | f loi | n Gesetz/Gesetze/Gesetzes | قانون
company/companies | f entreprise | n Unternehmen/Unternehmen | شرکت
""",
}

NOUNS: dict[str, tuple[Noun, ...]] = {
    kind: tuple(noun(kind, line) for line in table.strip().splitlines()) for kind, table in _TABLE.items()
}
