/**
 * Words that most pages of their language have, and that therefore tell pages apart badly: articles, pronouns,
 * prepositions, conjunctions, auxiliaries, small numbers, and what web pages say everywhere. One list for all
 * languages, since a page's language is often not known; read as text, so the order is free.
 */
export const frequentTokens = `
a about after again against all also am among an and any are as at be because been before being between both but by can
could did do does down during each even first for from further get had has have he her here him his how i if in into is
it its just like made make many may me more most much my new no not now of off on once one only or other our out over own
s said same see she should since so some such t than that the their them then there these they this those through time to
too two under until up us use used very was way we well were what when where which while who why will with would you your
re ve ll d m don isn didn doesn
0 1 2 3 4 5 6 7 8 9 10 11 12 20 30 100
home page site search menu contact login share read comments email copyright privacy terms cookies http https www com org
html click news
der die das den dem des ein eine einer einem einen eines und oder aber nicht auch auf aus bei bis durch für gegen im in ist
kann können man mehr mit nach noch nur sich sie er es wir ihr ich sind so über um unter vom von vor war waren was wenn wie
wird werden wurde zu zum zur als am an dass daß diese dieser dieses hat haben hatte sein seine sehr schon
le la les un une des du de et ou mais dans par pour sur avec sans ce cette ces cet son sa ses leur leurs il elle ils elles
on nous vous je que qui quoi dont où est sont été être avoir ont fait plus pas ne se si au aux comme tout tous aussi même
l qu c n j y
el los las una unos unas del al y o pero en con sin para por como más menos su sus lo que es son fue ser está están ha han
hay no sí se le les me mi ya muy también este esta estos estas ese esa entre cuando donde sobre hasta desde todo todos
o os as um uma uns umas do da dos das no na nos nas e ou mas com sem para por pelo pela como mais menos seu sua seus suas
que é são foi ser está não se ao aos à às também já muito isso este esta quando onde sobre até entre
il lo gli i uno di del dello della dei degli delle da dal dalla nel nella nei con su per tra fra che chi cui non è sono era
essere ha hanno più come anche questo questa questi queste quello si se ma o ed al alla ai alle
de het een en of maar niet ook op aan in uit bij tot door voor met van naar om te zijn is was waren worden wordt werd heeft
hebben had dat die dit deze er hij zij ze we wij je nog als dan meer kan
i w na z do o u po od za przez przy dla nie się jest są był była było być to ten ta te tego tej że jak co czy ale lub oraz
już tylko jego jej ich może
och att det som en ett på är av för med till den de har inte om ett man var jag vi men så från kan eller när
og at det som en et på er av for med til den de har ikke om men så fra kan eller når hun han jeg vi
ja on ei se että oli mutta kun niin hän myös ovat joka tai
a i o na v ve s se z ze k že je jsou byl být to ten ta pro jak ale nebo také do od po
bir ve bu da de için ile çok daha olarak olan gibi en ne o
и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще нет о из
ему теперь когда даже ну ли если уже или ни быть был него до вас них для мы их чем была сам чтобы без будто это этот эта
эти при об также может который которые
і й та що не на з із до у в як за це від для про але його є або
και το η ο να του της με για στο που από την τον σε είναι τα οι δεν θα στην
في من على إلى عن أن إن هذا هذه التي الذي مع كان كما لا ما أو و هو هي قد بعد كل
של את על לא זה עם הוא היא גם או כי אם אל יותר
के में की है से का और को पर यह हैं ने एक भी नहीं कि हो
và của có là không được cho trong với các một những người này đã để
yang dan di ke dari untuk pada dengan ini itu adalah tidak akan dalam
이 그 저 것 수 등 및 는 은 을 를 의 에 에서 있다 있는 하는 그리고 대한
的 了 是 在 和 有 不 我 这 個 个 一个 我们 他们 没有 可以 自己 这个 中国 公司 工作 時間 时间
する して した ます です から まで こと もの この その ある いる れる など には では とは ない った という ため
`
